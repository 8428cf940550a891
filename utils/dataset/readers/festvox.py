"""Festvox: etc/txt.done.data, with lines such as ( arctic_a0001 "Author of the danger trail." )."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from utils.dataset.facts import Bad
from utils.dataset.readers.facts import LineFault, LineUnreadable
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched

NAME = "Festvox"
IS_LIST = True
LINE = re.compile(r'\s*\(\s*(\S+)\s+"((?:[^"\\]|\\.)*)"\s*\)\s*')


def recognise(folder: Folder) -> Match | None:
    return matched(0.95, folder.texts_of_lines(LINE))


def read(folder: Folder, files: Sequence[Path]) -> Iterator[Item]:
    for path in files:
        for number, line in enumerate(folder.text(path).split("\n"), start=1):
            if match := LINE.fullmatch(line):
                yield Row(path, match[1], match[2].replace('\\"', '"'), "", None, number)
            elif line.strip():
                yield Bad(path, LineUnreadable(number, LineFault.CELLS, line[:60]))
