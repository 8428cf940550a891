"""LibriSpeech: 84-121123.trans.txt beside its audio; the first number is the reader."""

from collections.abc import Iterator
from pathlib import Path

from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched

NAME = "LibriSpeech"
IS_LIST = True
ABOUT = {"speakers.txt", "chapters.txt", "books.txt"}


def recognise(folder: Folder) -> Match | None:
    files = [path for path in folder.texts if path.name.lower().endswith(".trans.txt")]
    return matched(0.95, files, [path for path in folder.texts if path.name.lower() in ABOUT])


def read(folder: Folder, path: Path) -> Iterator[Item]:
    for number, line in folder.lines(path):
        name, _, text = line.strip().partition(" ")
        yield Row(path, name, text, number, name.partition("-")[0])
