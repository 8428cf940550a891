"""LibriTTS: a.normalized.txt and a.original.txt beside a.wav; the first number is the reader."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched

NAME = "LibriTTS"
IS_LIST = False
NORMALIZED, ORIGINAL = ".normalized.txt", ".original.txt"


def recognise(folder: Folder) -> Match | None:
    files = [path for path in folder.texts if path.name.endswith(NORMALIZED)]
    names = {path.name.removesuffix(NORMALIZED) for path in files}
    pairs = [path for path in folder.texts if path.name.removesuffix(ORIGINAL) in names]
    return matched(0.95, files, [*pairs, *folder.texts_with(".tsv")] if files else [])


def read(folder: Folder, files: Sequence[Path]) -> Iterator[Item]:
    for path in files:
        name = path.name.removesuffix(NORMALIZED)
        yield Row(path, name, folder.text(path), name.partition("_")[0])
