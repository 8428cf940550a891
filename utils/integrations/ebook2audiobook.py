"""Models for ebook2audiobook."""

import zipfile
from pathlib import Path

from utils.core.storage import atomic_writer
from utils.studio.facts import InputError
from utils.xtts.files import CONFIG_FILE, MODEL_FILE, REFERENCE_FILE, VOCABULARY_FILE


def pack_model(folder: Path, archive: Path) -> Path:
    """Pack a model as a custom model: four files, without a folder."""
    if not (folder / REFERENCE_FILE).is_file():
        raise InputError("no_reference", str(folder))
    names = {name: name for name in (CONFIG_FILE, MODEL_FILE, VOCABULARY_FILE)} | {REFERENCE_FILE: "ref.wav"}
    with atomic_writer(archive) as target, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as packed:
        for name, packed_name in names.items():
            packed.write(folder / name, packed_name)
    return archive
