"""Advice: settings that are valid and have a source, by amount of data, device and base."""

import json
from pathlib import Path
from typing import Literal

import pytest

from tests.dataset.building import built, recordings
from utils.__main__ import main
from utils.config import TrainConfig
from utils.core.wording import rows, speaking
from utils.studio.paths import CONFIGS, Project
from utils.training.advice import TrainingData, advise

PARTS: tuple[Literal["reason"], Literal["source"]] = ("reason", "source")


def data(minutes: float = 600, gib: float | None = 24.0, **values: object) -> TrainingData:
    return TrainingData(minutes, round(minutes * 10), 2, 11.0, gpu_gib=gib)._replace(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize("minutes", [1, 45, 240, 1200, 6000])
@pytest.mark.parametrize("gib", [None, 6.0, 12.0, 80.0])
@pytest.mark.parametrize("version", ["tiny", "v2.0.2"])
@pytest.mark.parametrize("language", ["am", "de"])
def test_every_value_has_a_source(minutes: float, gib: float | None, version: str, language: str) -> None:
    advice = advise(data(minutes, gib, version=version, language=language))
    texts = []
    for spoken in ("en", "am"):
        with speaking(spoken):
            texts += [item.text(part) for item in advice.recommendations for part in PARTS]
    assert not [text for text in texts if not text or text.startswith("advice.") or "{" in text]
    assert advice.config.version == version
    assert (CONFIGS / f"{advice.preset}.yaml").is_file()
    assert f"Advice.{advice.promise}.source" in rows()


def test_values_follow_data_and_device() -> None:
    small, large = advise(data(60)).config, advise(data(6000, 80.0)).config
    assert (small.enable_lora, large.enable_lora) == (True, False)
    assert small.batch_size * small.grad_acumm == 16
    assert large.batch_size * large.grad_acumm == pytest.approx(252, abs=4)
    assert advise(data(gib=6.0)).config.enable_lora
    assert advise(data(longest=25.0)).config.max_audio_length == 25
    tiny = advise(data(version="tiny"))
    assert (tiny.preset, tiny.config.learning_rate) == ("tiny_cpu", 3e-4)


@pytest.mark.slow
def test_the_command_gives_the_same_advice_in_every_form(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    built(recordings(tmp_path / "in", 2, seconds=16.0), Project(tmp_path / "mine"))
    words = ["advise", "--project", "mine", "--output", str(tmp_path), "--gpu-gib", "16"]
    assert main([*words, "--out", str(tmp_path / "mine.yaml")]) == 0
    printed = capsys.readouterr().out
    assert "[not measured]" in printed
    assert "configs/small_dataset.yaml" in printed
    assert TrainConfig.load(tmp_path / "mine.yaml").enable_lora
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["preset"] == "small_dataset"
