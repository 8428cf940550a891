"""`python -m utils check-text`, `say-how` and `prompts`, as a person types them."""

from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.xtts.small_vocabulary import write_vocabulary
from utils.__main__ import main
from utils.cli.check_text import read_rows
from utils.core.errors import DataError
from utils.dataset.text_files import read_listing
from utils.studio import paths
from utils.xtts.tokenizer import prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

Capture = pytest.CaptureFixture[str]
LIST = "audio_file|text|speaker_name\na.wav|ሰላም ለዓለም።|x\nb.wav|በ2016 ዓ.ም. 50 ብር ነበር።|x\n"


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for base models, still empty."""
    monkeypatch.setattr(paths, "MODELS", tmp_path / "models")
    return tmp_path / "models"


@pytest.fixture
def clip_list(tmp_path: Path) -> str:
    path = tmp_path / "metadata.csv"
    path.write_text(LIST, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("mode", ["latin", "fidel"])
def test_a_good_text_passes(clip_list: str, tmp_path: Path, mode: str, capsys: Capture) -> None:
    vocabulary = str(write_vocabulary(tmp_path / "base"))
    assert main(["check-text", clip_list, "--vocab", vocabulary, "--language", "amh_ET", "--text-mode", mode]) == 0
    assert "unknown ([UNK])      0 (0.00%)" in capsys.readouterr().out


def test_lists_and_plain_texts_are_read_with_lines_and_lengths(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes('\ufeffaudio_file|text\r\na.wav|ሰላም "ኳ"\r\nb.wav|ቡና\r\n'.encode())
    soundfile.write(tmp_path / "a.wav", np.zeros(44_100, dtype=np.float32), 22_050)
    assert read_rows(tmp_path / "text") == [(2, 'ሰላም "ኳ"', 2.0), (3, "ቡና", None)]
    (tmp_path / "text").write_text("ሰላም\n\nቡና\n", encoding="utf-8")
    assert read_rows(tmp_path / "text") == [(1, "ሰላም", None), (3, "ቡና", None)]


@pytest.mark.parametrize(("line", "problem"), [("b.wav||x", "line 3: no text"), ("b.wav|ሰላም", "line 3: 2/3 cells")])
def test_a_line_that_training_would_skip_is_named(tmp_path: Path, line: str, problem: str) -> None:
    (tmp_path / "metadata.csv").write_text(f"audio_file|text|speaker_name\na.wav|ሰላም|x\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=problem):
        read_rows(tmp_path / "metadata.csv")


def test_an_unknown_symbol_is_named(clip_list: str, tmp_path: Path, capsys: Capture) -> None:
    vocabulary = str(write_vocabulary(tmp_path / "base", without="əñ"))
    assert main(["check-text", clip_list, "--vocab", vocabulary]) == 1
    text = capsys.readouterr().out
    assert "ə U+0259 in 2 lines" in text
    assert "missing letters      ñ ə" in text
    assert main(["say-how", "ሰላም", "--vocab", vocabulary]) == 1
    assert lines(capsys.readouterr().out)["missing"] == "ə"


def test_the_vocabulary_is_that_of_a_trained_or_of_the_base_model(
    clip_list: str, tmp_path: Path, models: Path, capsys: Capture
) -> None:
    assert main(["check-text", clip_list]) == 1
    assert "--vocab" in capsys.readouterr().err
    base = Vocabulary.load(write_vocabulary(models / "v2.0.2"))
    assert main(["check-text", clip_list]) == 0
    prepare_tokenizer(base, "am", mode="ipa", overrides={"ሰላም": "salːam"}).save(tmp_path)
    assert main(["check-text", clip_list, "--model", str(tmp_path)]) == 0
    assert main(["say-how", "ሰላም", "--model", str(tmp_path)]) == 0
    assert "ሰላም\tsalːam\tsallam" in capsys.readouterr().out


def lines(text: str) -> dict[str, str]:
    stages, _, _ = text.partition("\n\n")
    return dict(line.split(maxsplit=1) for line in stages.splitlines())


def test_a_sentence_is_followed_to_its_tokens(tmp_path: Path, capsys: Capture) -> None:
    assert main(["say-how", "3", "ሰዓት", "--vocab", str(write_vocabulary(tmp_path))]) == 0
    stages = lines(capsys.readouterr().out)
    assert (stages["written"], stages["normalised"]) == ("3 ሰዓት", "ሶስት ሰአት")
    assert "səʔat" in stages["phonemes"]
    assert "sə’at" in stages["read"]
    assert "[am] " in stages["tokens"]


@pytest.mark.parametrize(("mode", "read"), [("latin", "səlam"), ("fidel", "ሰላም")])
def test_the_text_mode_can_be_chosen(mode: str, read: str, capsys: Capture) -> None:
    main(["say-how", "ሰላም", "--text-mode", mode])
    assert lines(capsys.readouterr().out)["read"] == read


def test_each_word_says_what_decided_its_long_consonants(capsys: Capture) -> None:
    main(["say-how", "ሁለት ሰላም 😀"])
    text = capsys.readouterr().out
    assert "ሁለት\thulətː\thulətt\tword list" in text
    assert "dropped      😀 (1)" in text


def test_a_few_sentences_hold_every_sound(tmp_path: Path, capsys: Capture) -> None:
    path, output = tmp_path / "prompts.csv", ["--output", str(tmp_path)]
    assert main(["prompts", "--count", "12", *output]) == 0
    *sentences, last = capsys.readouterr().out.splitlines()
    assert len(set(sentences)) == 12
    assert "every sound" in last
    assert main(["prompts", "--count", "3", "--list", str(path), "--speaker", "አበበ", *output]) == 0
    header, first, *_ = path.read_text(encoding="utf-8").splitlines()
    assert header == "audio_file|text|speaker_name"
    assert first.startswith("prompt_001.wav|")
    assert first.endswith("|አበበ")
    assert read_listing(path).clips[0].audio == "prompt_001.wav"
