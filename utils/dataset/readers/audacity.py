"""Audacity: labels of start, end and text, separated by tabs."""

import re
from collections.abc import Iterator
from pathlib import Path

from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched, unreadable
from utils.recognition.spans import Span

NAME = "Audacity labels"
IS_LIST = False
LINE = re.compile(r"\s*(\d+(?:[.,]\d+)?)\t(\d+(?:[.,]\d+)?)(?:\t(.*))?|\\\t.*")  # a backslash: a range of frequencies


def recognise(folder: Folder) -> Match | None:
    return matched(0.9, folder.texts_of_lines(LINE, ".txt", ".lab", ".tsv", ".csv"))


def read(folder: Folder, path: Path) -> Iterator[Item]:
    for number, line in folder.lines(path):
        match = LINE.fullmatch(line)
        if not match:
            yield unreadable(path, number, line)
        elif match[1]:
            span = Span(*(float(time.replace(",", ".")) for time in match.group(1, 2)))
            yield Row(path, folder.partner(path), match[3] or "", number, span=span)
