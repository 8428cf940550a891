"""LibriTTS: a.normalized.txt and a.original.txt beside a.wav; the first number is the reader."""

import re
from collections.abc import Iterator
from pathlib import Path

from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched

NAME = "LibriTTS"
IS_LIST = False
NORMALIZED = ".normalized.txt"
ORIGINAL = ".original.txt"
ABOUT = re.compile(r".+\.(?:trans|book)\.tsv|speakers\.tsv|reader_book\.tsv")


def recognise(folder: Folder) -> Match | None:
    files = [path for path in folder.texts if path.name.endswith(NORMALIZED)]
    names = {path.name.removesuffix(NORMALIZED) for path in files}
    pairs = [path for path in folder.texts if path.name.removesuffix(ORIGINAL) in names]
    return matched(0.95, files, [*pairs, *(path for path in folder.texts if ABOUT.fullmatch(path.name))])


def read(folder: Folder, path: Path) -> Iterator[Item]:
    name = path.name.removesuffix(NORMALIZED)
    yield Row(path, name, folder.text(path), speaker=name.partition("_")[0])
