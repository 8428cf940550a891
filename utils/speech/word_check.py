"""Which words of an Amharic text are heard in its speech, and where something else is said.

The words are aligned with the audio by the recogniser that also checks clips. A word counts as unheard if it fits much
worse than the better ones of its sentence, because every voice is heard a little differently.
"""

from typing import NamedTuple

import numpy as np

from utils.recognition.aligner import Rows, align
from utils.recognition.spans import Span
from utils.recognition.units import Word
from utils.speech.clarity import to_units
from utils.speech.facts import Flag, FlagKind
from utils.xtts.tokenizer import TokenizedText

UNHEARD = 1.75  # nats per unit by which a word is worse than the better ones; a short word weighs less
ADDED = 6.0  # nats of evidence for speech between two words
UNKNOWN = 1.5  # nats per unit of the better words: the recogniser does not know this voice
BETTER = 0.25  # share of the words


class WordCheck(NamedTuple):
    """The words of a sentence in its sound."""

    texts: tuple[str, ...]
    spans: tuple[Span, ...]
    unheard: frozenset[int]  # numbers of words
    added: frozenset[int]  # numbers of the words after which something is said that the text lacks; -1: before all

    @property
    def doubtful(self) -> frozenset[int]:
        return self.unheard | {max(0, number) for number in self.added}

    @property
    def flags(self) -> list[Flag]:
        marked: dict[FlagKind, frozenset[int]] = {
            "unheard": self.unheard,
            "added": frozenset(max(0, number) for number in self.added),
        }
        return [
            Flag(kind, words=tuple(self.texts[number] for number in sorted(numbers)))
            for kind, numbers in marked.items()
            if numbers
        ]


def check_words(text: TokenizedText, rows: Rows) -> WordCheck | None:
    """Look for each word of a text in what is heard; None if that cannot be told."""
    aligned = align(rows, _words(text))
    if aligned is None:
        return None
    costs = np.array([-word.score * word.units / (word.units + 2) for word in aligned.words])
    better = float(np.quantile(costs, BETTER))
    if better > UNKNOWN:
        return None
    unheard = np.flatnonzero(costs > better + UNHEARD).tolist()
    added = [number for number, gap in enumerate(aligned.gaps, -1) if gap.evidence > ADDED]
    texts, spans = zip(*((word.text, word.span) for word in aligned.words), strict=True)
    return WordCheck(texts, spans, frozenset(unheard), frozenset(added))


def _words(text: TokenizedText) -> list[Word]:
    """Return the words of a text that have sounds, as they are written if each of them was read as one."""
    written = text.normalised.split(" ")
    spoken = text.phones.split(" ")
    names = written if len(written) == len(spoken) else spoken
    return [Word(name, units) for name, phones in zip(names, spoken, strict=True) if (units := to_units(phones))]
