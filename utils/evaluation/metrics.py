"""Objective metrics: error rates, mel-cepstral distance to a recording, and whether differences are significant.

Differences between models are told from chance by a paired bootstrap over the sentences that both spoke.
"""

import functools
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from utils.amharic.alphabet import fold
from utils.core import languages
from utils.core.errors import TextError
from utils.evaluation.results import METRICS, EvaluatedUtterance, Metric
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.xtts.language_packs import LanguagePack, pack_for

Cepstra = npt.NDArray[np.float32]
Distances = npt.NDArray[np.float64]
WINDOW, HOP = 1024, 240  # samples: 43 ms every 10 ms
BANDS, MAX_FREQUENCY = 40, 8000.0  # Hz
ORDER = 13  # cepstra, without the first, which is loudness
FLOOR = 60.0  # dB below the loudest band; anything quieter is background noise
TO_DECIBELS = 10 / np.log(10) * np.sqrt(2)
DRAWS, BLOCK = 10_000, 100  # of the bootstrap
CONFIDENCE = 0.95
MIN_PAIRS = 8  # with fewer, a bootstrap interval is too narrow


class ErrorRates(NamedTuple):
    """Character and word error rates; above 1 when the transcript is much longer than the text."""

    cer: float
    wer: float


def error_rates(text: str, transcript: str, language: str) -> ErrorRates | None:
    """Compare a text with its transcript, or return None when the text has no words.

    Both are normalised to spoken words first: numbers spelled out, letters that sound alike folded, punctuation
    removed. Characters are compared without spaces, which Amharic writes in several ways.
    """
    import jiwer

    pack = pack_for(language)
    reference, hypothesis = spoken_words(text, pack), spoken_words(transcript, pack)
    if not reference:
        return None
    cer = jiwer.process_characters("".join(reference), "".join(hypothesis)).cer if hypothesis else 1.0
    wer = jiwer.process_words(" ".join(reference), " ".join(hypothesis)).wer if hypothesis else 1.0
    return ErrorRates(float(cer), float(wer))


def spoken_words(text: str, pack: LanguagePack) -> list[str]:
    try:
        text = pack.normalise(text)
    except TextError:  # a transcript may hold text that the cleaner cannot read; compare its letters as they are
        text = " ".join(text.split())
    text = unicodedata.normalize("NFC", text).casefold()
    if pack.code == languages.AMHARIC.code:
        text = fold(text)
    return "".join(letter if unicodedata.category(letter)[0] in "LMN" else " " for letter in text).split()


def mel_cepstral_distance(first: Samples, second: Samples) -> float | None:
    """Return the mean distance in dB of two 24 kHz recordings of the same words, aligned by time warping.

    The cepstra come from 40 mel bands, not from WORLD envelopes, so the values compare models with each other but not
    with published results. None when one recording is empty.
    """
    one, other = mel_cepstra(first), mel_cepstra(second)
    if not one.size or not other.size:
        return None
    return float(TO_DECIBELS * warped_distances(one, [other])[0])


def mel_cepstra(samples: Samples) -> Cepstra:
    if samples.size < WINDOW:
        return np.zeros((0, ORDER), np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[::HOP]
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(WINDOW).astype(np.float32), axis=1)))
    bands = power @ _mel_filters().T
    lowest = max(float(bands.max()) * 10 ** (-FLOOR / 10), 1e-12)
    return np.asarray(np.log(np.maximum(bands, lowest)) / 2 @ _cosines().T, np.float32)


def warped_distances(first: Cepstra, others: Sequence[Cepstra]) -> Distances:
    """Return the mean distance along the cheapest time-warping path from one sequence to each of the others.

    Each anti-diagonal depends only on the two before it, so it is computed at once and for all others together.
    Beside its cost, every cell stores the length of its path. An empty sequence is infinitely far.
    """
    rows, columns = len(first), max(map(len, others))
    costs = np.full((len(others), rows, columns), np.inf)
    for index, other in enumerate(others):
        costs[index, :, : len(other)] = frame_distances(first, other)
    costs = costs[:, :, ::-1]
    result = np.full(len(others), np.inf)
    ends = rows + np.array([len(other) for other in others]) - 2  # the diagonal of each last cell
    before, last = ((np.full((len(others), rows + 1), np.inf), np.zeros((len(others), rows + 1))) for _ in range(2))
    before[0][:, 0] = 0.0  # every path starts here
    for number in range(rows + columns - 1):
        low, high = max(0, number - columns + 1), min(rows, number + 1)
        # row i is stored at i + 1, so index i of the last diagonal is the cell above
        best = tuple(part[:, low + 1 : high + 1] for part in last)
        for step in (tuple(part[:, low:high] for part in diagonal) for diagonal in (last, before)):
            shorter = step[0] < best[0]
            best = np.where(shorter, step[0], best[0]), np.where(shorter, step[1], best[1])
        new = np.full_like(last[0], np.inf), np.zeros_like(last[1])
        new[0][:, low + 1 : high + 1] = best[0] + costs.diagonal(columns - 1 - number, 1, 2)
        new[1][:, low + 1 : high + 1] = best[1] + 1
        done = ends == number
        result[done] = new[0][done, rows] / new[1][done, rows]
        before, last = last, new
    return result


def frame_distances(first: Cepstra, second: Cepstra) -> Distances:
    squares = np.square(first).sum(1)[:, None] + np.square(second).sum(1)[None] - 2 * first @ second.T
    return np.asarray(np.sqrt(np.maximum(squares, 0)), np.float64)


@functools.cache
def _mel_filters() -> Cepstra:
    """Return triangular filters evenly spaced in mel, one a row."""
    top = 2595 * np.log10(1 + MAX_FREQUENCY / 700)
    edges = 700 * (10 ** (np.linspace(0, top, BANDS + 2) / 2595) - 1)
    frequencies = np.fft.rfftfreq(WINDOW, 1 / OUTPUT_RATE)
    left, middle, right = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    rising, falling = (frequencies - left) / (middle - left), (right - frequencies) / (right - middle)
    return np.asarray(np.maximum(0, np.minimum(rising, falling)), np.float32)


@functools.cache
def _cosines() -> Cepstra:
    """Return rows 1 to 13 of the DCT-II, scaled so that the cepstra are amplitudes of cosines."""
    orders, bands = np.arange(1, ORDER + 1)[:, None], np.arange(BANDS)[None] + 0.5
    return np.asarray(2 / BANDS * np.cos(np.pi * orders * bands / BANDS), np.float32)


@dataclass(frozen=True)
class Difference:
    """The difference of two models in one metric, over the sentences that both spoke."""

    metric: Metric
    first: str
    second: str
    mean: float  # mean of the second minus mean of the first
    low: float  # ends of the 95 % confidence interval
    high: float
    pairs: int  # number of shared sentences

    @property
    def winner(self) -> str:
        """Return the better model, or "" where the difference may be chance."""
        if self.pairs < MIN_PAIRS or self.low <= 0 <= self.high:
            return ""
        return self.second if (self.mean > 0) == (self.metric.better == "higher") else self.first

    def __str__(self) -> str:
        metric = self.metric
        if self.pairs < MIN_PAIRS:
            return f"{metric.title}: {self.pairs} sentences are too few to compare {self.first} and {self.second}."
        low, high = (self.low, self.high) if self.mean >= 0 else (-self.high, -self.low)
        interval = f"95 % CI {metric.format_difference(low)} to {metric.format_difference(high)}"
        shown = f"{metric.format_difference(abs(self.mean))} ({interval}; {self.pairs} sentences)"
        if not self.winner:
            return f"{metric.title}: no significant difference between {self.first} and {self.second}: {shown}."
        loser = self.first if self.winner == self.second else self.second
        return f"{metric.title}: {self.winner} is better than {loser} by {shown}."


def compare(utterances: Sequence[EvaluatedUtterance], seed: int = 0) -> list[Difference]:
    names = list(dict.fromkeys(result.checkpoint for result in utterances))
    return [
        gap
        for first, second in combinations(names, 2)
        for metric in METRICS
        if (gap := difference(utterances, metric, first, second, seed))
    ]


def difference(
    utterances: Sequence[EvaluatedUtterance], metric: Metric, first: str, second: str, seed: int = 0
) -> Difference | None:
    """Compare two models in one metric; None when they share no sentence that has it."""
    values: dict[str, dict[str, float]] = {first: {}, second: {}}
    for result in utterances:
        if result.checkpoint in values and (value := metric.value(result)) is not None:
            values[result.checkpoint][result.sentence] = value
    gaps = np.array([values[second][key] - value for key, value in values[first].items() if key in values[second]])
    if not gaps.size:
        return None
    low, high = confidence_interval(gaps, seed)
    return Difference(metric, first, second, float(gaps.mean()), low, high, gaps.size)


def confidence_interval(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", seed: int = 0) -> tuple[float, float]:
    random = np.random.default_rng(seed)
    means = [values[random.integers(values.size, size=(BLOCK, values.size))].mean(1) for _ in range(DRAWS // BLOCK)]
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(np.concatenate(means), [tail, 100 - tail])
    return float(low), float(high)
