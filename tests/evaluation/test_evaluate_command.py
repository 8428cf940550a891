"""`python -m utils evaluate`, as a person types it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.evaluation.fake_models import FakeModel, candidate
from utils.__main__ import main
from utils.config import SpeechConfig
from utils.evaluation.models import Candidate
from utils.evaluation.report import load

Fake = Callable[..., list[str]]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Fake:
    """Put fake models in the place of those that are named; return the names that were asked for."""
    monkeypatch.setattr("utils.evaluation.evaluate.draw", lambda _report: None)

    def put(**models: FakeModel) -> list[str]:
        asked: list[str] = []

        def candidates(places: Sequence[str], _config: SpeechConfig, _output: Path) -> list[Candidate]:
            asked.extend(places)
            return [candidate(name, model) for name, model in models.items()]

        monkeypatch.setattr("utils.evaluation.candidates.candidates", candidates)
        return asked

    return put


@pytest.fixture
def said(tmp_path: Path) -> Path:
    path = tmp_path / "said.txt"
    path.write_text("ሰላም ለሁላችሁም\nልጆቹ በትምህርት ቤት ይማራሉ\nውሃው በጣም ቀዝቃዛ ነው\n", encoding="utf-8")
    return path


def evaluate(tmp_path: Path, *words: str) -> int:
    return main(["evaluate", "--output", str(tmp_path), *words])


def test_models_are_compared_and_the_folder_is_named(
    tmp_path: Path, fake: Fake, said: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = fake(first=FakeModel(), second=FakeModel(pace=1.5))
    assert evaluate(tmp_path, "--checkpoints", "a", "b", "--sentences", str(said)) == 0
    shown = capsys.readouterr().out
    assert asked == ["a", "b"]
    assert "6 of 6  second  ውሃው በጣም ቀዝቃዛ ነው" in shown
    assert "CER and WER are empty: No recogniser was named" in shown
    assert shown.splitlines()[-1] == str(tmp_path / ".evaluation")
    assert len(load(tmp_path / ".evaluation").utterances) == 6


def test_sentences_of_ours_are_spoken_unless_told_otherwise(tmp_path: Path, fake: Fake) -> None:
    model = FakeModel()
    asked = fake(only=model)
    assert evaluate(tmp_path, "--model", "mine", "--count", "3", "--out", str(tmp_path / "here")) == 0
    assert asked == ["mine"]
    assert model.spoken[0] == "አዎ።"
    assert load(tmp_path / "here").checkpoints == ("only",)


def test_ctrl_c_shows_what_is_finished(
    tmp_path: Path, fake: Fake, said: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(slow=FakeModel(stop_after=1))
    assert evaluate(tmp_path, "--sentences", str(said)) == 130
    shown = capsys.readouterr().out
    assert "Interrupted. What is finished:" in shown
    assert "2 sentences were not spoken yet; the same command goes on from here." in shown


@pytest.mark.slow
def test_a_recogniser_that_cannot_be_had_leaves_its_column_empty(
    tmp_path: Path, fake: Fake, said: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(one=FakeModel())
    assert evaluate(tmp_path, "--sentences", str(said), "--asr", str(tmp_path / "nothing" / "here")) == 0
    assert "CER and WER are empty: Whisper" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--checkpoints", "a", "--model", "b"), "Models are named twice."),
        (("--count", "0"), "--count 0 leaves no sentence."),
        (("--sentences", "nothing.txt"), "There is no file nothing.txt."),
        (("--project", "none"), "There is no list"),
        (("--language", "ti"), "There are no sentences of ours in Tigrinya."),
    ],
)
def test_what_cannot_be_evaluated_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    assert evaluate(tmp_path, *words) == 1
    assert sentence in capsys.readouterr().err
