"""CTM: the time of each word, as recognisers and aligners write them; words are joined to stretches of speech."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from utils.dataset.facts import Bad
from utils.dataset.readers.facts import LineFault, LineUnreadable
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched
from utils.dataset.readers.timed import join_words
from utils.recognition.spans import Cue, Span

NAME = "CTM"
IS_LIST = True
LINE = re.compile(r"(\S+)\s+\S+\s+(\d*\.?\d+)\s+(\d*\.?\d+)\s+(\S+)(?:\s+\S+)*\s*")


def recognise(folder: Folder) -> Match | None:
    return matched(0.9, folder.texts_with(".ctm"))


def read(folder: Folder, files: Sequence[Path]) -> Iterator[Item]:
    for path in files:
        words: list[tuple[str, Cue]] = []
        for number, line in enumerate(folder.text(path).split("\n"), start=1):
            if match := LINE.fullmatch(line):
                start, length = float(match[2]), float(match[3])
                words.append((match[1], Cue(Span(start, start + length), match[4])))
            elif line.strip() and not line.startswith(";;"):
                yield Bad(path, LineUnreadable(number, LineFault.TIMES, line[:60]))
        for name, group in groupby(words, key=lambda word: word[0]):
            for cue in join_words(cue for _, cue in group):
                yield Row(path, name, cue.text, "", cue.span, is_machine=True)
