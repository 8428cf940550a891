"""Sentences for the microphone, as a person asks for them."""

from pathlib import Path

import pytest

from utils.__main__ import main


def test_a_few_sentences_hold_every_sound(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prompts", "--count", "12", "--output", str(tmp_path)]) == 0
    *sentences, last = capsys.readouterr().out.splitlines()
    assert len(set(sentences)) == 12
    assert "every sound" in last


def test_a_list_is_written_that_the_preparation_reads(tmp_path: Path) -> None:
    from utils.dataset.existing_datasets import is_dataset

    path = tmp_path / "prompts.csv"
    assert main(["prompts", "--count", "3", "--list", str(path), "--speaker", "አበበ", "--output", str(tmp_path)]) == 0
    header, first, *_ = path.read_text(encoding="utf-8").splitlines()
    assert header == "audio_file|text|speaker_name"
    assert first.startswith("prompt_001.wav|")
    assert first.endswith("|አበበ")
    assert is_dataset(path)
