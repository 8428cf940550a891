"""Every setting, declared once: its type, bounds, default, title and one honest sentence.

The form, the flags, the YAML files and the reference page are generated from these fields.
"""

from utils.config.base import SEPARATOR, Config, Language, Text, describe, printable, read_yaml
from utils.config.dataset import DatasetConfig
from utils.config.other import DEFAULT_VOICE, FeaturesConfig, RehearsalConfig, ServeConfig, SpeechConfig
from utils.config.train import TrainConfig

__all__ = [
    "DEFAULT_VOICE",
    "SEPARATOR",
    "Config",
    "DatasetConfig",
    "FeaturesConfig",
    "Language",
    "RehearsalConfig",
    "ServeConfig",
    "SpeechConfig",
    "Text",
    "TrainConfig",
    "describe",
    "printable",
    "read_yaml",
]
