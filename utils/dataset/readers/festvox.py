"""Festvox: etc/txt.done.data, with lines such as ( arctic_a0001 "Author of the danger trail." )."""

import re
from collections.abc import Iterator
from pathlib import Path

from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched, unreadable

NAME = "Festvox"
IS_LIST = True
LINE = re.compile(r'\s*\(\s*(\S+)\s+"((?:[^"\\]|\\.)*)"\s*\)\s*')


def recognise(folder: Folder) -> Match | None:
    return matched(0.95, folder.texts_of_lines(LINE))


def read(folder: Folder, path: Path) -> Iterator[Item]:
    for number, line in folder.lines(path):
        if match := LINE.fullmatch(line):
            yield Row(path, match[1], match[2].replace('\\"', '"'), number)
        else:
            yield unreadable(path, number, line, "cells")
