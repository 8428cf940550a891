"""LibriSpeech: 84-121123.trans.txt beside its audio; the first number is the reader."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched

NAME = "LibriSpeech"
IS_LIST = True
ABOUT = {"speakers.txt", "chapters.txt", "books.txt"}


def recognise(folder: Folder) -> Match | None:
    files = [path for path in folder.texts if path.name.lower().endswith(".trans.txt")]
    return matched(0.95, files, [path for path in folder.texts if path.name.lower() in ABOUT])


def read(folder: Folder, files: Sequence[Path]) -> Iterator[Item]:
    for path in files:
        for number, line in enumerate(folder.text(path).split("\n"), start=1):
            name, _, text = line.strip().partition(" ")
            if name:
                yield Row(path, name, text, name.partition("-")[0], None, number)
