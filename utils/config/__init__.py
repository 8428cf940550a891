"""Every setting, declared once: its type, bounds, default, title and one honest sentence.

The form, the flags, the YAML files and the reference page are generated from these fields.
"""

from utils.config.base import Config, Language, Text, describe, printable, read_yaml
from utils.config.dataset import DatasetConfig
from utils.config.smaller import FeaturesConfig, RehearsalConfig, SpeechConfig
from utils.config.train import TrainConfig

__all__ = [
    "Config",
    "DatasetConfig",
    "FeaturesConfig",
    "Language",
    "RehearsalConfig",
    "SpeechConfig",
    "Text",
    "TrainConfig",
    "describe",
    "printable",
    "read_yaml",
]
