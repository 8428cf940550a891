"""Sentences to read into a microphone, chosen so that few of them cover every sound in many contexts."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

from utils.amharic import normalize, phonemize
from utils.amharic.alphabet import PHONES, WORD, encode

SENTENCES = Path(__file__).parent / "data" / "prompts_am.txt"
SINGLE_SOUND_WEIGHT = 3.0  # of a single sound, compared with a pair of sounds


def choose(count: int, sentences: Sequence[str] | None = None, read: Iterable[str] = ()) -> list[str]:
    """Choose sentences greedily, each the one that adds most to those before.

    A sound or a pair of sounds is worth less each time it has occurred, and a long sentence must add more than a short
    one. The first few sentences cover every sound; all together cover the pairs as evenly as possible.

    The candidates are the shipped sentences by default; those that were ``read`` already are not chosen again.
    """
    read = list(read)
    done = set(read)
    units = {text: found for text in sentences or shipped() if text not in done and (found := _units(text))}
    counts = Counter(unit for text in read for unit in _units(text))

    def worth(text: str) -> float:
        values = ((SINGLE_SOUND_WEIGHT if len(unit) == 1 else 1.0) / (1 + counts[unit]) for unit in set(units[text]))
        return sum(values) / math.sqrt(len(units[text]))

    chosen: list[str] = []
    while units and len(chosen) < count:
        best = max(units, key=worth)
        counts.update(units.pop(best))
        chosen.append(best)
    return chosen


def missing_sounds(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the sounds of the language that do not occur; a geminate counts as its single sound."""
    codes = {code for text in texts for code in sounds(text)}
    return tuple(phone for phone, code in PHONES.items() if code not in codes)


@cache
def shipped() -> tuple[str, ...]:
    return tuple(line for line in SENTENCES.read_text(encoding="utf-8").split("\n") if line)


def _units(text: str) -> tuple[str, ...]:
    """Return the sounds of a text, and the pairs of sounds within its words."""
    words = sounds(text).split()
    return tuple(unit for word in words for unit in (*word, *map("".join, pairwise(word))))


@cache
def sounds(text: str) -> str:
    """Return the Amharic words of a text with one letter for each sound, without length."""
    words = phonemize(" ".join(WORD.findall(normalize(text)))).split()
    return " ".join(map(encode, words)).replace(":", "").replace("W", "w")
