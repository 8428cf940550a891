"""Limits that come from the project itself: right texts against texts of other clips, and planted errors.

A text of another clip is surely wrong, so the scores of such texts show what a wrong one looks like in this voice and
this noise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from utils.media.arrays import BoolArray, Float64Array
from utils.recognition.aligner import Alignment, Rows, SpokenWord, align, score
from utils.recognition.units import Word, units_in

FOUND = (0.98, 0.95, 0.9, 0.8, 0.7, 0.6)  # shares of wrong texts to find, the best that is possible
MAX_WRONG = 0.6  # share of the texts of a project; with more, nothing can be said
OTHERS = 4  # texts of other clips that each clip is compared with
MIN_CLIPS = 12  # fewer say nothing about a project
SMALL = 40  # clips; with fewer, right clips that match poorly pass the limits too
NEAR = 0.6  # below the limit of a small project: none of 395 right texts scores lower, see benchmarks/log.md
MAX_MISSED = 0.31  # share of wrong texts; with more, the recogniser cannot judge
# Weaker signs of an error are not taken for one: of 515 right clips of 14 readers who were new to the recogniser, 1.2 %
# reach one of these; of as many texts with a word too many, or without one, 86 % do.
LARGEST_WORD_SCORE = -3.75
SMALLEST_GAP = 9.0
# What is surely an error where weaker signs are common among right clips, as with a reader who stumbles: of 606 clips
# of such a reader, 2.1 % reach one of these, and of errors that were planted 56 % do.
SURE_WORD_SCORE = -5.0
SURE_GAP = 20.0
# Each is used where no larger share of clips is beyond it; else the recogniser is too weak for single words.
MAX_SURE = 0.04
MANY = 300  # clips; in fewer, chance hides how many right ones have weak signs
PLANTED = 200  # words too many, and as many that are left out
CLEARLY = 3.0  # times the lower quartile of the right ones, of two standard deviations
MIN_UNITS = 4  # of a word that is judged alone; shorter ones are often swallowed
NO_WORD_LIMITS = (-np.inf, np.inf, 1.0)  # below which score and above which evidence, and the share that is missed


@dataclass(frozen=True)
class Aim:
    """What a limit has to do."""

    max_lost: float  # share of right clips
    min_found: float  # share of wrong ones; with less there is no limit
    surely_wrong: float  # share of wrong ones that score lower than almost any right one


TEXTS = Aim(max_lost=0.03, min_found=0.6, surely_wrong=0.75)
# Single words, which are judged only where this is easy: words too many, and those that are left out.
WORDS = Aim(max_lost=0.015, min_found=0.9, surely_wrong=0.5)
GAPS = Aim(max_lost=0.015, min_found=0.8, surely_wrong=0.5)
# In a project of many clips, where a share so small can be measured.
WORDS_OF_MANY = replace(WORDS, max_lost=0.0075)
GAPS_OF_MANY = replace(GAPS, max_lost=0.005)


@dataclass(frozen=True)
class Limits:
    """Below or above which a text does not match, and how many wrong ones that finds."""

    score: float  # of the whole text, per unit
    word: float  # of one word, per unit
    gap: float  # evidence of speech that the text lacks
    missed: float  # share of texts of other clips above the limit
    missed_words: float  # share of single words too many, or left out, that are not found
    sure: float = math.inf  # score of a whole text below which an error is sure

    @property
    def usable(self) -> bool:
        return self.missed <= MAX_MISSED

    @property
    def checks_words(self) -> bool:
        return bool(np.isfinite(self.word))


@dataclass(frozen=True)
class Judged:
    """A clip to calibrate with: its sound and its text."""

    rows: Rows
    words: Sequence[Word]

    @property
    def units(self) -> list[int]:
        return units_in(self.words)


def calibrate(clips: Sequence[Judged]) -> Limits | None:
    """Return the limits of a project; None with too few clips."""
    clips = [clip for clip in clips if clip.units]
    if len(clips) < MIN_CLIPS:
        return None
    random = np.random.default_rng(0)
    own = [score(clip.rows, clip.units) for clip in clips]
    other = [score(clips[at].rows, units) for at, units in _others(clips, random)]
    limit, missed = limit_between(own, other, TEXTS)
    right = [clip for clip, value in zip(clips, own, strict=True) if value >= limit]
    words, gaps, missed_words = _small_errors(right, random) if right else NO_WORD_LIMITS
    return Limits(limit, words, gaps, missed, missed_words, math.inf if len(own) >= SMALL else limit - NEAR)


# Long because the share of wrong ones among the own goes into each step of one formula.
def limit_between(own: Sequence[float], wrong: Sequence[float], aim: Aim) -> tuple[float, float]:
    """Return the limit below which a score is wrong, and the share of wrong ones that it misses (1: there is none).

    It is the highest score that few of the wrong ones reach, as long as it loses few right ones; where a gap follows,
    it is in the middle of the gap. The own scores are a mixture: as many of them are wrong as lie where only wrong
    ones do.
    """
    ours = np.array(own)
    others = np.array(wrong)
    share = min(1.0, _share(ours < np.quantile(others, aim.surely_wrong)) / aim.surely_wrong)
    # In a sample of this size; one clip may always be wrong.
    uncertain = max(1 / ours.size, math.sqrt(max(share, aim.max_lost) / ours.size))
    for found in FOUND:
        if found < aim.min_found or share >= MAX_WRONG:
            break
        edge = float(np.quantile(others, found))
        lost = min(_share(ours < edge) - share * found, _tail(ours, edge, share) - share * (1 - found))
        right = ours[ours >= edge]
        if right.size and lost <= aim.max_lost * (1 - share) + uncertain:
            limit = (edge + float(np.quantile(right, aim.max_lost))) / 2
            return limit, _share(others >= limit)
    return -np.inf, 1.0


def _share(which: BoolArray) -> float:
    return float(np.mean(which))


def _tail(scores: Float64Array, edge: float, share: float) -> float:
    """Return how many right ones may lie below an edge: no more than above it, half the way to a typical right one.

    That is known only where the edge is clearly below the bulk of the right ones. In a large sample whose bulk is all
    equal, no distance is clear.
    """
    typical, quarter = (float(np.quantile(scores, share + part * (1 - share))) for part in (0.5, 0.25))
    has_no_spread = typical == quarter and scores.size >= MANY  # most gaps have no evidence
    if has_no_spread or typical - edge < CLEARLY * (typical - quarter):
        return 1.0
    return _share((scores >= edge) & (scores < (edge + typical) / 2))


def _others(clips: Sequence[Judged], random: np.random.Generator) -> list[tuple[int, list[int]]]:
    """Pair each clip with the texts of the most similar length."""
    lengths = np.array([len(clip.units) for clip in clips], float)
    pairs = []
    for at in range(len(clips)):
        order = np.argsort(np.abs(lengths - lengths[at]) + random.random(len(clips)))
        different = [other for other in order if clips[other].units != clips[at].units]
        pairs += [(at, clips[other].units) for other in different[:OTHERS]]
    return pairs


def _small_errors(clips: Sequence[Judged], random: np.random.Generator) -> tuple[float, float, float]:
    """Return the limits that find a word too many and one that is left out, and the share of these that they miss."""
    vocabulary = [word for clip in clips for word in clip.words if len(word.units) >= MIN_UNITS]
    if not vocabulary:
        return NO_WORD_LIMITS
    own = [aligned for clip in clips if (aligned := align(clip.rows, clip.words))]
    planted, left_out = _plant_errors(clips, vocabulary, random)
    for_words, for_gaps = (WORDS_OF_MANY, GAPS_OF_MANY) if len(clips) >= MANY else (WORDS, GAPS)
    word, words_missed = limit_or_sure([*map(worst_word, own)], planted, for_words, SURE_WORD_SCORE)
    gap, gaps_missed = limit_or_sure([*map(gap_score, own)], left_out, for_gaps, -SURE_GAP)
    if not np.isfinite([word, gap]).all():  # it is too weak for single words, and a limit for one kind may be chance
        return NO_WORD_LIMITS
    return min(word, LARGEST_WORD_SCORE), max(-gap, SMALLEST_GAP), (words_missed + gaps_missed) / 2


def _plant_errors(
    clips: Sequence[Judged], vocabulary: list[Word], random: np.random.Generator
) -> tuple[list[float], list[float]]:
    """Insert a word into each text, and leave one out of each; return the scores of the words and of the gaps."""
    planted = []
    left_out = []
    for clip in list(clips) * -(-PLANTED // len(clips)):
        words = list(clip.words)
        words.insert(random.integers(len(words) + 1), vocabulary[random.integers(len(vocabulary))])
        if aligned := align(clip.rows, words):
            planted.append(worst_word(aligned))
        places = [number for number, word in enumerate(clip.words) if len(word.units) >= MIN_UNITS]
        if len(places) > 1:
            words = list(clip.words)
            del words[places[random.integers(len(places))]]
            if aligned := align(clip.rows, words):
                left_out.append(gap_score(aligned))
    return planted, left_out


def limit_or_sure(own: Sequence[float], wrong: Sequence[float], aim: Aim, sure: float) -> tuple[float, float]:
    """Return the limit that a project allows, or else the sure one where few clips are beyond it."""
    limit, missed = limit_between(own, wrong, aim)
    if np.isfinite(limit) or len(own) < MANY or _share(np.array(own) < sure) > MAX_SURE:
        return limit, missed
    return sure, _share(np.array(wrong) >= sure)


def worst_word(aligned: Alignment) -> float:
    return min(map(word_score, aligned.words), default=0.0)


def word_score(word: SpokenWord) -> float:
    """Return the score of a word; that of a short one weighs less, because it varies more."""
    return word.score * word.units / (word.units + 2) if word.units >= MIN_UNITS else 0.0


def gap_score(aligned: Alignment) -> float:
    """Return the evidence of the largest gap as a score: lower is worse."""
    return -max(gap.evidence for gap in aligned.gaps)
