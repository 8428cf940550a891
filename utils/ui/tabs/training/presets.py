"""The settings files in configs/ as choices: what each is called and what it is for."""

from typing import NamedTuple

from utils.config import TrainConfig
from utils.core.paths import CONFIGS
from utils.ui.i18n import say


class Preset(NamedTuple):
    """A settings file.

    Attributes:
        name: Its file, without the ending.
        title: What a person reads.
        about: What it is, in a sentence.
    """

    name: str
    title: str
    about: str


PRESETS = (
    Preset("conservative", "Conservative", "Stays near the base model: low rate, a third of the GPT frozen, EMA."),
    Preset("balanced", "Balanced", "The middle way: whole model, EMA in RAM, early stopping; for a GPU of 12 GB."),
    Preset("aggressive", "Aggressive", "Learns fastest and forgets fastest: high rate, compiled; for a GPU of 24 GB."),
    Preset("standard", "Memory: 20 GB", "Nothing is computed twice, EMA on the GPU."),
    Preset("t4", "Memory: 16 GB (T4)", "Gradient checkpointing and FP16 with a scaler, as hosted T4 machines need."),
    Preset("memory_optimized", "Memory: 12 GB", "Gradient checkpointing, EMA in RAM."),
    Preset("extreme_memory_optimized", "Memory: 8 GB", "Two clips at a time, optimiser in RAM: slow."),
    Preset("lora_6gb", "Memory: 6 GB (LoRA)", "Small matrices beside the frozen model; forgets and adapts less."),
    Preset("amharic", "Amharic", "Where to begin with Amharic: sounds in Latin letters, gradient checkpointing."),
    Preset("amharic_200hr", "Amharic, 200 hours", "Large batches, text rows first, EMA; for about 200 hours."),
    Preset("small_dataset", "Under 2 hours of speech", "LoRA and early stopping against learning by heart."),
    Preset("tiny_cpu", "Trial on a CPU (tiny)", "The small voice of the program: the whole way in minutes."),
)  # fmt: skip
BY_NAME = {preset.name: preset for preset in PRESETS}
TIERS = tuple(preset.name for preset in PRESETS[:8])


def choices(language: str) -> list[tuple[str, str]]:
    """List the presets as (what a person reads, name)."""
    return [(say(preset.title, language), preset.name) for preset in PRESETS]


def load(name: str) -> TrainConfig:
    """Read a preset."""
    return TrainConfig.load(CONFIGS / f"{BY_NAME[name].name}.yaml")
