"""FLEURS as published: train.tsv without a header, its audio in train.tar.gz."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched

NAME = "FLEURS"
IS_LIST = True
COLUMNS = 7  # id, file, written text, normalized text, letters, samples, gender


def recognise(folder: Folder) -> Match | None:
    return matched(0.95, [path for path in folder.texts_with(".tsv") if _is_fleurs(folder.sample(path))])


def read(folder: Folder, files: Sequence[Path]) -> Iterator[Item]:
    for path in files:
        for number, line in enumerate(folder.text(path).split("\n"), start=1):
            if line.strip():
                cells = [*line.split("\t"), "", "", ""]
                yield Row(path, cells[1], cells[2], "", None, number)


def _is_fleurs(lines: Sequence[str]) -> bool:
    rows = [line.split("\t") for line in lines]
    return bool(rows) and all(len(row) == COLUMNS and row[0].isdecimal() and row[5].isdecimal() for row in rows)
