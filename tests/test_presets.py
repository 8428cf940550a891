"""Every file in configs/ loads, and begins with the command that uses it."""

from pathlib import Path

import pytest

from utils.config import TrainConfig
from utils.paths import CONFIGS, ROOT

PRESETS = sorted(CONFIGS.glob("*.yaml"))


def test_there_are_presets() -> None:
    assert PRESETS


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_a_preset_loads(preset: Path) -> None:
    assert TrainConfig.load(preset).language == "am"


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_a_preset_begins_with_its_command(preset: Path) -> None:
    command = f"# python -m utils train --config {preset.relative_to(ROOT)}"
    assert preset.read_text(encoding="utf-8").startswith(command + "\n")
