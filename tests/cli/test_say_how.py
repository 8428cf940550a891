from pathlib import Path

import pytest

from tests.xtts.small_vocabulary import write_vocabulary
from utils.__main__ import main
from utils.core import paths
from utils.xtts.tokenizer import prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary


@pytest.fixture(autouse=True)
def no_base_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MODELS", tmp_path / "models")


def lines(shown: str) -> dict[str, str]:
    stages, _, _ = shown.partition("\n\n")
    return dict(line.split(maxsplit=1) for line in stages.splitlines())


def test_a_sentence_is_followed_to_its_letters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["say-how", "3", "ሰዓት"]) == 0
    shown = lines(capsys.readouterr().out)
    assert shown["written"] == "3 ሰዓት"
    assert "ሦስት" in shown["normalised"] or "ሶስት" in shown["normalised"]
    assert "ə" in shown["phonemes"]
    assert "səʔat" not in shown["read"]
    assert "sə’at" in shown["read"]


def test_a_vocabulary_shows_the_tokens(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["say-how", "ሰላም", "--vocab", str(write_vocabulary(tmp_path))]) == 0
    assert lines(capsys.readouterr().out)["tokens"].startswith("6: [am] ")


def test_what_the_vocabulary_lacks_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["say-how", "ሰላም", "--vocab", str(write_vocabulary(tmp_path, without="ə"))]) == 1
    assert lines(capsys.readouterr().out)["missing"] == "ə"


@pytest.mark.parametrize(("mode", "read"), [("latin", "səlam"), ("ipa", "səlam"), ("fidel", "ሰላም")])
def test_the_text_mode_can_be_chosen(mode: str, read: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["say-how", "ሰላም", "--text-mode", mode])
    assert lines(capsys.readouterr().out)["read"] == read


def test_each_word_says_what_decided_its_long_consonants(capsys: pytest.CaptureFixture[str]) -> None:
    main(["say-how", "ሁለት ሰላም 😀"])
    shown = capsys.readouterr().out
    assert "ሁለት\thulətː\thulətt\tword list" in shown
    assert "dropped      😀 (1)" in shown


def test_a_model_speaks_with_its_own_pronunciations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    base = Vocabulary.load(write_vocabulary(tmp_path))
    prepare_tokenizer(base, "am", overrides={"ሰላም": "salːam"}).save(tmp_path)
    assert main(["say-how", "ሰላም", "--model", str(tmp_path)]) == 0
    assert "ሰላም\tsalːam\tsallam" in capsys.readouterr().out


def test_a_misspelt_language_is_answered(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["say-how", "ሰላም", "--language", "Amharik"]) == 1
    assert "Did you mean Amharic" in capsys.readouterr().err
