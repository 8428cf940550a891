"""The whole evaluation with real classes at a tiny size, and a recogniser in its own process."""

from pathlib import Path

import pytest

from testing import random_model
from tests.dataset.recordings import babble
from utils.__main__ import main
from utils.evaluation.evaluate import EvaluatedModel, unique_names
from utils.evaluation.report import load
from utils.media import audio
from utils.speech.synthesizer import open_voice

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("models")
    return [random_model.build(folder / f"tiny {seed}", seed=seed) for seed in (0, 1)]


def test_two_models_are_evaluated(
    models: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("utils.recognition.recognisers.choice.WHISPER", "tests.recognition.fake_recognisers:Counting")
    texts = tmp_path / "texts.txt"
    texts.write_text("Yes.\nNo!\n", encoding="utf-8")
    words = ["--sentences", str(texts), "--language", "en", "--asr", "any", "--output", str(tmp_path)]
    words += ["--device", "cpu", "--precision", "fp32", "--tries", "1", "--checkpoints", *map(str, models)]
    assert main(["evaluate", *words]) == 0
    report = load(tmp_path / ".evaluation")
    assert report.checkpoints == ("tiny 0", "tiny 1")
    assert len(report.utterances) == 4
    for result in report.utterances:
        assert not result.error
        assert (result.transcript or "").endswith(" en cpu auto")
        assert -1 <= (result.similarity or 0) <= 1
        assert (result.real_time_factor or 0) > 0
        assert audio.duration(report.folder / result.wav) > 0
    capsys.readouterr()
    assert main(["evaluate", *words]) == 0
    assert " of 4  tiny" not in capsys.readouterr().out  # nothing is spoken again


def test_a_voice_is_similar_to_itself(models: list[Path], tmp_path: Path) -> None:
    reference = tmp_path / "reference.wav"
    audio.save(reference, babble(6.0), 16_000)
    model = EvaluatedModel(open_voice(models[0], "cpu", "fp32"))
    embedding = model.voice_of(audio.load(reference, 24_000))
    assert float(embedding @ embedding) == pytest.approx(1.0, abs=1e-4)
    assert float(model.voice(str(reference)) @ embedding) > 0.98


def test_names_are_unique() -> None:
    run = Path("output/voice/runs/20260101-train/checkpoints")
    paths = [run / "step_5", run / "step_10", Path("output/voice/ready"), Path("other/voice/ready")]
    assert unique_names(paths) == ["20260101-train step_5", "20260101-train step_10", "voice", "voice (2)"]
