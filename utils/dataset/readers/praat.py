"""Praat: a TextGrid beside its recording; also those of the Montreal Forced Aligner, with a tier of words."""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from utils.dataset.facts import Bad
from utils.dataset.readers.facts import TextNotUsed
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched
from utils.dataset.readers.timed import join_words
from utils.recognition.spans import Cue, Span

NAME = "Praat TextGrid"
IS_LIST = False
TOKEN = re.compile(r'"(?:[^"]|"")*"|(?<![\w\[.])-?\d+(?:\.\d+)?(?:[eE]-?\d+)?(?![\w\]])')
TEXT_TIERS = re.compile(r"(?i)sent|utt|text|trans|ortho|phrase|segment")
DERIVED_TIERS = re.compile(r"(?i)phon|word|syll|pos|tone")
UNSPOKEN = frozenset({"", "sil", "sp", "spn", "<eps>", "<p:>", "<p>", "#"})


class Tier(NamedTuple):
    """A named row of intervals."""

    name: str
    cues: list[Cue]

    @property
    def words(self) -> float:
        """How many words an interval has; phones and words have one."""
        return sum(len(cue.text.split()) for cue in self.cues) / max(1, len(self.cues))


def recognise(folder: Folder) -> Match | None:
    return matched(0.9, folder.texts_with(".textgrid"))


def read(folder: Folder, path: Path) -> Iterator[Item]:
    tiers = [tier for tier in parse(folder.text(path)) if tier.cues]
    if not tiers:
        yield Bad(path, TextNotUsed("empty"))
        return
    best = max(tiers, key=lambda tier: (bool(TEXT_TIERS.search(tier.name)), tier.name == "words", tier.words))
    cues = best.cues if best.words > 1.2 or TEXT_TIERS.search(best.name) else join_words(best.cues)
    yield from (Row(path, folder.partner(path), cue.text, span=cue.span) for cue in cues)
    for tier in tiers:
        if tier is not best and not DERIVED_TIERS.search(tier.name):
            yield Bad(path, TextNotUsed("tier", tier.name))


def parse(text: str) -> Iterator[Tier]:
    """Parse a TextGrid in its long or short form: only its strings and numbers count."""
    tokens = (token[1:-1].replace('""', '"') if token[0] == '"' else token for token in TOKEN.findall(text))
    *_, _start, _end, count = islice(tokens, 5)  # "ooTextFile", "TextGrid", the times of the whole, the tiers
    for _ in range(int(count)):
        kind, name, _start, _end, size = islice(tokens, 5)
        cues = []
        for _ in range(int(size)):
            if kind == "IntervalTier":
                start, end, label = islice(tokens, 3)
                if label.strip().casefold() not in UNSPOKEN:
                    cues.append(Cue(Span(float(start), float(end)), " ".join(label.split())))
            else:
                next(tokens), next(tokens)
        yield Tier(name, cues)
