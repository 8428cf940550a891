"""Plants faults in takes: words that are cut out, doubled, replaced by another word of the same voice, or moved.

Each is planted at the quietest place within 50 ms of where the word is heard in the take.
"""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from utils.config import SpeechConfig
from utils.media.audio import Samples
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE
from utils.speech.attempts import best_takes
from utils.speech.guards import AudioAnalysis
from utils.speech.types import Generation, Sentence
from utils.speech.word_check import WordCheck
from utils.xtts.tokenizer import TokenizedText

KINDS = ("cut", "doubled", "replaced", "moved")
WORDS = range(6, 14)  # of a sentence
NEAR, FADE, SMOOTH = 0.05, 80, 480  # seconds, samples, samples


class Take(NamedTuple):
    """A sentence as it was spoken, with the sample at which each word begins, and the end of the last one."""

    text: TokenizedText
    samples: Samples
    check: WordCheck
    edges: list[int]

    @property
    def words(self) -> list[tuple[str, Samples]]:
        parts = [self.samples[start:end] for start, end in pairwise(self.edges)]
        return list(zip(self.check.texts, parts, strict=True))


class Planted(NamedTuple):
    """A take with a fault, and the numbers of the words where it is."""

    take: Take
    samples: Samples
    places: set[int]

    @property
    def is_found(self) -> bool:
        """Return whether a word is marked that is at the fault or beside it."""
        check = AudioAnalysis(self.samples, self.take.text).words
        return check is None or any(abs(word - place) <= 1 for word in check.doubtful for place in self.places)


def read_take(text: TokenizedText, samples: Samples) -> Take | None:
    """Find the words of a take; None where that cannot be told."""
    check = AudioAnalysis(samples, text).words
    if check is None or len(check.texts) < min(WORDS) - 1:
        return None
    edges = [_quietest(samples, second) for second in (*(span.start for span in check.spans), check.spans[-1].end)]
    return Take(text, samples, check, edges)


def plant(kind: str, take: Take, others: Sequence[tuple[str, Samples]], choice: random.Random) -> Planted:
    """Plant a fault; ``others`` are spoken words, of which one replaces another."""
    sound, number = take.samples, choice.randrange(len(take.edges) - 1)
    start, end = take.edges[number : number + 2]
    word = sound[start:end]
    if kind == "moved":
        target = choice.choice([place for place in range(len(take.edges)) if place not in {number, number + 1}])
        at = take.edges[target]
        parts = [sound[:at], word, sound[at:start], sound[end:]]
        if at > start:
            parts = [sound[:start], sound[end:at], word, sound[at:]]
        return Planted(take, _joined(parts), {number, target})
    different = [sound for text, sound in others if text != take.check.texts[number]]
    middle = {"cut": [], "doubled": [word, word], "replaced": [choice.choice(different)]}[kind]
    return Planted(take, _joined([sound[:start], *middle, sound[end:]]), {number})


def repaired(planted: Planted, others: Sequence[Samples]) -> bool:
    """Return whether the fault is gone when the planted take comes first and then these."""
    sounds = iter([planted.samples, *others])

    generations: list[Generation] = []

    def begin(_sentence: Sentence, attempt: int) -> Generation:
        size = planted.samples.size if attempt == 1 else others[attempt - 2].size
        codes = [number * 7 % 1024 for number in range(round(size / OUTPUT_RATE / CODE_SECONDS))]
        generations.append(Generation([*codes, 1025], [], [-1.0] * len(codes), ended=True, finished=True))
        return generations[-1]

    settings = SpeechConfig(tries=1 + len(others), trim=False, loudness=0)
    (spoken,) = best_takes([Sentence(planted.take.text)], begin, lambda: (generations.pop(), next(sounds)), settings)
    return not np.array_equal(spoken.samples, planted.samples)


def _joined(parts: Sequence[Samples]) -> Samples:
    joined, ramp = parts[0], np.linspace(0, 1, FADE, dtype=np.float32)
    for part in parts[1:]:
        size = FADE if min(joined.size, part.size) >= FADE else 0
        mixed = joined[joined.size - size :] * ramp[:size][::-1] + part[:size] * ramp[:size]
        joined = np.concatenate([joined[: joined.size - size], mixed, part[size:]])
    return joined


def _quietest(samples: Samples, second: float) -> int:
    first = max(0, round((second - NEAR) * OUTPUT_RATE))
    near = samples[first : round((second + NEAR) * OUTPUT_RATE)]
    return first + int(np.convolve(near**2, np.ones(SMOOTH), "same").argmin()) if near.size else samples.size
