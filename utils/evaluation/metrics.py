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

from utils.amharic.alphabet import fold
from utils.core import languages
from utils.core.errors import TextError
from utils.evaluation.results import METRICS, EvaluatedUtterance, Metric
from utils.media.arrays import Float32Array, Float64Array
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.xtts.language_packs import LanguagePack, pack_for

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

    Both are normalized to spoken words first: numbers spelled out, letters that sound alike folded, punctuation
    removed. Characters are compared without spaces, which Amharic writes in several ways.
    """
    import jiwer

    pack = pack_for(language)
    reference = spoken_words(text, pack)
    hypothesis = spoken_words(transcript, pack)
    if not reference:
        return None
    cer = jiwer.process_characters("".join(reference), "".join(hypothesis)).cer if hypothesis else 1.0
    wer = jiwer.process_words(" ".join(reference), " ".join(hypothesis)).wer if hypothesis else 1.0
    return ErrorRates(float(cer), float(wer))


def spoken_words(text: str, pack: LanguagePack) -> list[str]:
    try:
        text = pack.normalize(text)
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
    one = mel_cepstra(first)
    other = mel_cepstra(second)
    return float(TO_DECIBELS * warped_distance(one, other)) if one.size and other.size else None


def mel_cepstra(samples: Samples) -> Float32Array:
    """Return cepstra 1 to 13 of each frame, scaled so that they are amplitudes of cosines."""
    from scipy.fft import dct

    if samples.size < WINDOW:
        return np.zeros((0, ORDER), np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(samples, WINDOW)[::HOP]
    power = np.square(np.abs(np.fft.rfft(frames * np.hanning(WINDOW).astype(np.float32), axis=1)))
    bands = power @ _mel_filters()
    lowest = max(float(bands.max()) * 10 ** (-FLOOR / 10), 1e-12)
    cepstra = dct(np.log(np.maximum(bands, lowest)) / 2, axis=1) / BANDS
    return np.asarray(cepstra[:, 1 : ORDER + 1], np.float32)


def warped_distance(first: Float32Array, second: Float32Array) -> float:
    """Return the mean distance along the cheapest time-warping path; an empty sequence is infinitely far."""
    from librosa.sequence import dtw
    from scipy.spatial.distance import cdist

    if not first.size or not second.size:
        return float("inf")
    costs, path = dtw(C=cdist(first, second))
    return float(costs[-1, -1] / len(path))


@functools.cache
def _mel_filters() -> Float32Array:
    """Return triangular filters evenly spaced in mel, one a column."""
    from torchaudio.functional import melscale_fbanks

    return np.asarray(melscale_fbanks(WINDOW // 2 + 1, 0.0, MAX_FREQUENCY, BANDS, OUTPUT_RATE).numpy())


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


def compare(utterances: Sequence[EvaluatedUtterance]) -> list[Difference]:
    names = list(dict.fromkeys(result.checkpoint for result in utterances))
    return [
        gap
        for first, second in combinations(names, 2)
        for metric in METRICS
        if (gap := difference(utterances, metric, first, second))
    ]


def difference(utterances: Sequence[EvaluatedUtterance], metric: Metric, first: str, second: str) -> Difference | None:
    """Compare two models in one metric; None when they share no sentence that has it."""
    values: dict[str, dict[str, float]] = {first: {}, second: {}}
    for result in utterances:
        if result.checkpoint in values and (value := metric.value(result)) is not None:
            values[result.checkpoint][result.sentence] = value
    gaps = np.array([values[second][key] - value for key, value in values[first].items() if key in values[second]])
    if not gaps.size:
        return None
    low, high = confidence_interval(gaps)
    return Difference(metric, first, second, float(gaps.mean()), low, high, gaps.size)


def confidence_interval(values: Float64Array) -> tuple[float, float]:
    random = np.random.default_rng(0)
    means = [values[random.integers(values.size, size=(BLOCK, values.size))].mean(1) for _ in range(DRAWS // BLOCK)]
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(np.concatenate(means), [tail, 100 - tail])
    return float(low), float(high)
