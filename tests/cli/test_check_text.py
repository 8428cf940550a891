from pathlib import Path

import pytest

from tests.xtts.small_vocabulary import write_vocabulary
from utils.__main__ import main
from utils.core import paths
from utils.xtts.tokenizer import prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

LIST = "audio_file|text|speaker_name\na.wav|ሰላም ለዓለም።|x\nb.wav|በ2016 ዓ.ም. 50 ብር ነበር።|x\n"


@pytest.fixture
def text(tmp_path: Path) -> str:
    path = tmp_path / "metadata.csv"
    path.write_text(LIST, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("mode", ["latin", "fidel"])
def test_a_good_text_passes(text: str, tmp_path: Path, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    vocabulary = str(write_vocabulary(tmp_path / "base"))
    assert main(["check-text", text, "--vocab", vocabulary, "--language", "amh_ET", "--text-mode", mode]) == 0
    assert "unknown ([UNK])      0 (0.00%)" in capsys.readouterr().out


def test_an_unknown_symbol_fails_and_is_named(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vocabulary = str(write_vocabulary(tmp_path / "base", without="əñ"))
    assert main(["check-text", text, "--vocab", vocabulary]) == 1
    shown = capsys.readouterr().out
    assert "ə U+0259 in 2 lines" in shown
    assert "missing letters      ñ ə" in shown


def test_a_trained_model_brings_its_own_settings(text: str, tmp_path: Path) -> None:
    prepare_tokenizer(Vocabulary.load(write_vocabulary(tmp_path)), "am", mode="ipa").save(tmp_path)
    assert main(["check-text", text, "--model", str(tmp_path)]) == 0


def test_without_any_vocabulary_it_says_where_to_get_one(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(paths, "MODELS", tmp_path / "models")
    assert main(["check-text", text]) == 1
    assert "--vocab" in capsys.readouterr().err


def test_the_vocabulary_of_the_base_model_is_found(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MODELS", tmp_path / "models")
    write_vocabulary(tmp_path / "models" / "v2.0.2")
    assert main(["check-text", text]) == 0
