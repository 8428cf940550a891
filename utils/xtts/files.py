"""The files of a model folder: the names used on the Hugging Face Hub, plus the files this project adds."""

import zipfile
from pathlib import Path
from typing import Any

from utils.core.errors import FileDamagedError
from utils.core.folders import hash_once, read_signed_manifest
from utils.core.storage import read_json, read_object

MODEL_FILE = "model.pth"
CONFIG_FILE = "config.json"
VOCABULARY_FILE = "vocab.json"
DVAE_FILE = "dvae.pth"
MEL_FILE = "mel_stats.pth"
SPEAKERS_FILE = "speakers_xtts.pth"
SETTINGS_FILE = "text.json"  # how text of the added language is processed
REFERENCE_FILE = "reference.wav"  # the default voice
ABOUT_FILE = "about.json"  # where a fine-tuned model comes from
DIGESTS_FILE = "files.json"  # size and digest of each file of an exported model; version 1.1 wrote none

REQUIRED_FILES = (CONFIG_FILE, VOCABULARY_FILE)  # needed beside the weights
HUB_FILES = (MODEL_FILE, CONFIG_FILE, VOCABULARY_FILE, DVAE_FILE, MEL_FILE, SPEAKERS_FILE)
MODEL_FILE_NAMES = (MODEL_FILE, "best_model.pth")  # coqui's Trainer writes the second

TINY = "tiny"  # the embedded voice, which needs no download and no licence
PICKLE = b"\x80"  # first byte of torch's older file format


def looks_complete(path: Path) -> bool:
    """Tell a model file from a Git LFS pointer, an error page or a partial download."""
    try:
        if path.suffix == ".json":
            return isinstance(read_json(path), dict)
        with path.open("rb") as file:
            return zipfile.is_zipfile(path) or file.read(1) == PICKLE
    except (OSError, ValueError):
        return False


def verify_folder(folder: Path) -> None:
    """Compare the files of an exported model with their digests, once per size and time.

    Those in .pth files are compared with the checksums inside when they are read. A folder without digests is of
    version 1.1 or of another program.
    """
    if not (folder / DIGESTS_FILE).is_file():
        return
    for name, file in read_signed_manifest(folder / DIGESTS_FILE)["files"].items():
        path = folder / name
        if not path.is_file():  # what is needed is missed by whoever reads it
            continue
        if path.stat().st_size != file["size"]:
            raise FileDamagedError(path, "size")
        if path.suffix != ".pth" and hash_once(path) != file["sha256"]:
            raise FileDamagedError(path)


def read_about(folder: Path) -> dict[str, Any]:
    """Read about.json of a model folder, which is informational only."""
    return read_object(folder / ABOUT_FILE)


def missing_files(folder: Path, weights: Path | None = None) -> list[str]:
    """List what a coqui folder lacks, apart from weights that were named themselves."""
    present = {path.name for path in folder.iterdir() if path.is_file()}
    missing = [] if weights or present & set(MODEL_FILE_NAMES) else [MODEL_FILE]
    return missing + [name for name in REQUIRED_FILES if name not in present]
