"""A text of which each line begins with the name of its recording: OpenSLR, AISHELL, voice messages with one list."""

import re
from collections.abc import Iterator
from pathlib import Path

from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched

NAME = "lines with names"
IS_LIST = True
LINE = re.compile(r"\s*(?P<name>[^\s:|]+?)[.:)፦፡|]?[\s:|]+(?P<text>\S.*)")


def recognise(folder: Folder) -> Match | None:
    return matched(0.5, [path for path in folder.texts if _names_audio(folder, path)])


def read(folder: Folder, path: Path) -> Iterator[Item]:
    for number, line in folder.lines(path):
        match = LINE.fullmatch(line)
        yield Row(path, match["name"] if match else line.strip(), match["text"] if match else "", number)


def _names_audio(folder: Folder, path: Path) -> bool:
    lines = folder.sample(path)
    matches = [match for line in lines if (match := LINE.fullmatch(line))]
    names = [match["name"] for match in matches if folder.locate(match["name"], path)]
    return len(names) * 2 >= len(lines) and folder.are_names(names, path)
