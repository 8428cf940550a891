"""CTM: the time of each word, as recognisers and aligners write them; words are joined to stretches of speech."""

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched, unreadable
from utils.dataset.readers.timed import join_words
from utils.recognition.spans import Cue, Span

NAME = "CTM"
IS_LIST = True
LINE = re.compile(r"(\S+)\s+\S+\s+(\d*\.?\d+)\s+(\d*\.?\d+)\s+(\S+)(?:\s+\S+)*\s*")


def recognise(folder: Folder) -> Match | None:
    return matched(0.9, folder.texts_with(".ctm"))


def read(folder: Folder, path: Path) -> Iterator[Item]:
    words = []
    for number, line in folder.lines(path):
        if match := LINE.fullmatch(line):
            start = float(match[2])
            words.append((match[1], Cue(Span(start, start + float(match[3])), match[4])))
        elif not line.startswith(";;"):
            yield unreadable(path, number, line)
    for name, group in groupby(words, key=itemgetter(0)):
        for cue in join_words(cue for _, cue in group):
            yield Row(path, name, cue.text, span=cue.span, is_machine=True)
