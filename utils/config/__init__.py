"""Every setting, declared once: type, bounds, default, title and description.

The form, the flags, the YAML files and the reference page are generated from these fields.
"""

from utils.config.base import (
    AUTO_SECONDS,
    MODEL_SECONDS,
    MODEL_TOKENS,
    SEPARATOR,
    Config,
    Language,
    Text,
    printable,
    read_yaml,
    split_values,
)
from utils.config.dataset import DatasetConfig, FeaturesConfig
from utils.config.speech import DEFAULT_VOICE, ServeConfig, SpeakerConfig, SpeechConfig
from utils.config.train import DownloadConfig, TrainConfig

__all__ = [
    "AUTO_SECONDS",
    "DEFAULT_VOICE",
    "MODEL_SECONDS",
    "MODEL_TOKENS",
    "SEPARATOR",
    "Config",
    "DatasetConfig",
    "DownloadConfig",
    "FeaturesConfig",
    "Language",
    "ServeConfig",
    "SpeakerConfig",
    "SpeechConfig",
    "Text",
    "TrainConfig",
    "printable",
    "read_yaml",
    "split_values",
]
