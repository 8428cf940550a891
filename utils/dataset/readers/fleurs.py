"""FLEURS as published: train.tsv without a header, its audio in train.tar.gz."""

import re
from collections.abc import Iterator
from pathlib import Path

from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched, unreadable

NAME = "FLEURS"
IS_LIST = True
LINE = re.compile(r"\d+\t([^\t]+)\t([^\t]*)\t[^\t]*\t[^\t]*\t\d+\t[^\t]*")  # id, file, text, normalized, letters, …


def recognise(folder: Folder) -> Match | None:
    return matched(0.95, folder.texts_of_lines(LINE, ".tsv"))


def read(folder: Folder, path: Path) -> Iterator[Item]:
    for number, line in folder.lines(path):
        if match := LINE.fullmatch(line):
            yield Row(path, match[1], match[2], number)
        else:
            yield unreadable(path, number, line, "cells")
