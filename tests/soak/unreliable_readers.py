"""Readers with every fault that the campaign looks for; in a file of their own, for another process imports them."""

import os
from pathlib import Path

from tests.soak.reading import Format
from utils.core.errors import DataError

FILE = "whole.txt"
CONTENT = b"1 whole file\n2 lines of it\n"


def fine(path: Path) -> object:
    if path.read_bytes() != CONTENT:
        raise DataError("It is damaged.", hint="Copy it again.")
    return path


def unsaid(path: Path) -> object:
    if path.read_bytes() != CONTENT:
        raise DataError("It is damaged.")
    return path


def careless(path: Path) -> object:
    return [line.split(b" ")[1] for line in path.read_bytes().splitlines()]


def dying(path: Path) -> object:
    if path.read_bytes() != CONTENT:
        os._exit(3)
    return path


def endless(path: Path) -> object:
    while path.read_bytes() != CONTENT:
        pass
    return path


def greedy(path: Path) -> object:
    return path if path.read_bytes() == CONTENT else bytearray(4 << 30)


FINE, UNSAID, CARELESS, DYING, ENDLESS, GREEDY = (
    Format(read.__name__, FILE, read) for read in (fine, unsaid, careless, dying, endless, greedy)
)
