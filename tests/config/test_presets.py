"""Every file in configs/ loads, begins with the command that uses it, and fits the memory that it is made for."""

from pathlib import Path

import pytest

from utils.config import TrainConfig, read_yaml
from utils.core.paths import ROOT
from utils.studio.paths import CONFIGS
from utils.training import memory

PRESETS = sorted(CONFIGS.glob("*.yaml"))
TIERS = {"standard": 20, "memory_optimized": 12, "t4": 16, "extreme_memory_optimized": 8, "lora_6gb": 6}  # GB
GPU_SIZES = TIERS | {"small_dataset": 8}
SIZES = {"max_audio_length", "max_text_length", "max_mel_length", "batch_tokens"}  # none may be cut to save memory


def load(name: str) -> TrainConfig:
    return TrainConfig.load(CONFIGS / f"{name}.yaml")


def test_every_preset_is_here() -> None:
    assert {preset.stem for preset in PRESETS} == {*GPU_SIZES, "tiny_cpu"}


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_a_preset_leaves_clips_as_they_are(preset: Path) -> None:
    assert not SIZES & read_yaml(preset).keys()


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_a_preset_is_for_amharic(preset: Path) -> None:
    assert TrainConfig.load(preset).language == "am"


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_a_preset_begins_with_its_command(preset: Path) -> None:
    command = f"# python -m utils train --config {preset.relative_to(ROOT).as_posix()}"
    assert preset.read_text(encoding="utf-8").startswith(command + "\n")


@pytest.mark.parametrize("name", TIERS)
def test_the_effective_batch_is_the_same_in_every_tier(name: str) -> None:
    config = load(name)
    assert config.batch_size * config.grad_acumm == 16


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(name, size, marks=pytest.mark.slow if name in TIERS else pytest.mark.long)
        for name, size in GPU_SIZES.items()
    ],
)
def test_a_preset_fits_the_gpu_that_it_is_made_for(name: str, size: int) -> None:
    estimate = memory.estimate(load(name), memory.Device.gpu(size))
    assert estimate.fits, estimate


def test_the_small_model_fits_any_computer() -> None:
    device = memory.Device("cpu", 4 * memory.GIB, "a small computer", half=False)
    assert memory.estimate(load("tiny_cpu"), device).fits
