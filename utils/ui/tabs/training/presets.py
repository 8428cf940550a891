"""The settings files in configs/ as choices of the form; their titles and descriptions are phrases of the page."""

from utils.config import TrainConfig
from utils.core.paths import CONFIGS
from utils.ui.i18n import t

TIERS = (
    "conservative",
    "balanced",
    "aggressive",
    "standard",
    "t4",
    "memory_optimized",
    "extreme_memory_optimized",
    "lora_6gb",
)
PRESETS = (*TIERS, "amharic", "amharic_200hr", "small_dataset", "tiny_cpu")


def title(name: str, language: str) -> str:
    """Return the title of a preset."""
    return t(f"preset.{name}.title", language)


def about(name: str, language: str) -> str:
    """Return the description of a preset."""
    return t(f"preset.{name}.about", language)


def choices(language: str) -> list[tuple[str, str]]:
    """List the presets as (title, name)."""
    return [(title(name, language), name) for name in PRESETS]


def load(name: str) -> TrainConfig:
    """Read a preset."""
    return TrainConfig.load(CONFIGS / f"{name}.yaml")
