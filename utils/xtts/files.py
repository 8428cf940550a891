"""The files of a model folder: the names of those of the hub, and of what this project lays beside them."""

import zipfile
from pathlib import Path

from utils.core.storage import read_json

MODEL_FILE, CONFIG_FILE, VOCABULARY_FILE = "model.pth", "config.json", "vocab.json"
DVAE_FILE, MEL_FILE, SPEAKERS_FILE = "dvae.pth", "mel_stats.pth", "speakers_xtts.pth"
SETTINGS_FILE = "text.json"  # how the added language is read
REFERENCE_FILE = "reference.wav"  # the voice that it speaks with unless told otherwise
ABOUT_FILE = "about.json"  # what a finished model says of itself

BELONGING = (CONFIG_FILE, VOCABULARY_FILE)  # what weights cannot speak without
HUB_FILES = (MODEL_FILE, CONFIG_FILE, VOCABULARY_FILE, DVAE_FILE, MEL_FILE, SPEAKERS_FILE)  # what the hub has
PICKLE = b"\x80"  # how files in torch's older format begin


def looks_whole(path: Path) -> bool:
    """Tell a model file from a pointer, an error page or the first part of a download."""
    try:
        if path.suffix == ".json":
            return isinstance(read_json(path), dict)
        with path.open("rb") as file:
            return zipfile.is_zipfile(path) or file.read(1) == PICKLE
    except (OSError, ValueError):
        return False
