"""Audacity: labels of start, end and text, separated by tabs."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from utils.dataset.facts import Bad
from utils.dataset.readers.facts import LineFault, LineUnreadable
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched
from utils.dataset.readers.timed import partner
from utils.recognition.spans import Span

NAME = "Audacity labels"
IS_LIST = False
LINE = re.compile(r"\s*(\d+(?:[.,]\d+)?)\t(\d+(?:[.,]\d+)?)(?:\t(.*))?|\\\t.*")  # a backslash: a range of frequencies


def recognise(folder: Folder) -> Match | None:
    return matched(0.9, folder.texts_of_lines(LINE, ".txt", ".lab", ".tsv", ".csv"))


def read(folder: Folder, files: Sequence[Path]) -> Iterator[Item]:
    for path in files:
        audio = partner(folder, path) or path.stem
        for number, line in enumerate(folder.text(path).split("\n"), start=1):
            match = LINE.fullmatch(line)
            if match and match[1]:
                start, end = (float(time.replace(",", ".")) for time in match.group(1, 2))
                yield Row(path, audio, match[3] or "", "", Span(start, end), number)
            elif line.strip() and not match:
                yield Bad(path, LineUnreadable(number, LineFault.TIMES, line[:60]))
