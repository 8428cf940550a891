"""Scores clips as references: clean, long enough, lively, and neither clipped nor mostly silence."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from utils.config import DatasetConfig
from utils.core.errors import AmharicTtsError
from utils.media import audio
from utils.media.arrays import BoolArray, Float64Array, Int64Array
from utils.media.audio import Samples
from utils.media.facts import AudioFileError
from utils.recognition.levels import ClipScores, measure
from utils.recognition.vad import RATE as SPEECH_RATE
from utils.recognition.vad import segments_from, track_speech
from utils.speech.facts import Melody, NoiseLevel, ReferenceQuality
from utils.speech.voices import MIN_SECONDS, SILENT

MAX_SECONDS = 30.0  # of a clip that the published model uses
GOOD_SECONDS = 8.0
MIN_PITCH, MAX_PITCH = 60.0, 450.0  # Hz, of voices
PITCH_RATE = 8000
FRAME, STEP = 0.05, 0.01  # seconds: three periods of the lowest voice
PERIODIC = 0.6  # share of a frame that the frame one period before explains
MIN_VOICED = 20  # frames, 0.2 s; fewer say nothing about the pitch


class ReferenceScore(NamedTuple):
    """A clip and how good a reference it is."""

    path: Path
    total: float = 0.0  # from 0 to 1
    quality: ReferenceQuality | None = None  # the reasons
    error: AmharicTtsError | None = None  # why it cannot be used


# Each property maps to a mark from 0.05 at its worst to 1 at its best, with a weight. By judgement, not measured: noise
# goes into the voice, and a short clip shows little of it.
SCALES = (
    (1.0, GOOD_SECONDS, 3),  # seconds
    (5.0, 30.0, 4),  # signal-to-noise ratio in dB
    (0.3, 2.5, 1),  # standard deviation of the pitch in semitones
    (0.02, 0.0, 3),  # share of the samples at full scale
    (0.2, 0.7, 2),  # share that is speech
)


def rank(paths: Iterable[Path | str]) -> list[ReferenceScore]:
    return sorted([score(Path(path)) for path in paths], key=lambda each: (bool(each.error), -each.total))


def score(path: Path) -> ReferenceScore:
    try:
        info = audio.probe(path)
        samples = _load(path, info.rate)
    except AmharicTtsError as error:
        return ReferenceScore(path, error=error)
    speech = segments_from(track_speech(iter([audio.resample(samples, info.rate, SPEECH_RATE)])), DatasetConfig())
    measured = measure(samples, info.rate, speech, "")
    spread = _spread(pitches(audio.resample(samples, info.rate, PITCH_RATE), PITCH_RATE))
    total = _total([info.seconds, measured.snr_db, spread, measured.clipping, measured.speech_ratio])
    return ReferenceScore(path, total, _quality(info.seconds, measured, spread))


def _load(path: Path, rate: int) -> Samples:
    samples = audio.load(path, rate, end=MAX_SECONDS)
    if samples.size < MIN_SECONDS * rate:
        raise AudioFileError(path, "too_short", f"{samples.size / rate:.2f}")
    if np.abs(samples).max() < SILENT:
        raise AudioFileError(path, "silent")
    return samples


def _spread(pitch: Float64Array) -> float | None:
    """Return the standard deviation of the pitch in semitones, by its quartiles: a few octave errors do not count."""
    if pitch.size < MIN_VOICED:
        return None
    low, high = np.percentile(12 * np.log2(pitch), (25, 75))
    return float(high - low) / 1.349


def _total(values: Sequence[float | None]) -> float:
    """Return the geometric mean of the marks, so that one bad property cannot be made up for."""
    logs = 0.0
    for value, (worst, best, weight) in zip(values, SCALES, strict=True):
        logs += weight * math.log(np.interp(((value or 0.0) - worst) / (best - worst), (0, 1), (0.05, 1)))
    return math.exp(logs / sum(weight for _, _, weight in SCALES))


# Long because it is one formula after another, over the same frames.
def pitches(samples: Samples, rate: int) -> Float64Array:
    """Return the pitch of each voiced frame in Hz, by autocorrelation."""
    size = round(FRAME * rate)
    step = round(STEP * rate)
    if samples.size < size:
        return np.zeros(0)
    frames = np.lib.stride_tricks.sliding_window_view(samples, size)[::step].astype(np.float64)
    frames = frames - frames.mean(axis=1, keepdims=True)
    shortest = math.floor(rate / MAX_PITCH)
    longest = math.ceil(rate / MIN_PITCH)
    correlation = _autocorrelation(frames, longest + 2)
    best = _first_peak(correlation[:, shortest : longest + 1]) + shortest
    rows = np.arange(len(frames))
    voiced = (correlation[rows, best] > PERIODIC) & _is_loud(frames)
    lags = best + _vertex(correlation[rows, best - 1], correlation[rows, best], correlation[rows, best + 1])
    return np.asarray(rate / lags[voiced & (best > shortest) & (best < longest)], np.float64)


def _is_loud(frames: Float64Array) -> BoolArray:
    """Return which frames are louder than the pauses between words."""
    power = np.sqrt(np.mean(frames**2, axis=1))
    return np.asarray((power > 0.1 * np.sqrt(np.mean(power**2))) & (power > SILENT / 10), np.bool_)


def _autocorrelation(frames: Float64Array, lags: int) -> Float64Array:
    """Compare each frame with itself some samples later: 1 where the overlapping parts are equal."""
    size = frames.shape[1]
    spectrum = np.fft.rfft(frames, 2 ** math.ceil(math.log2(2 * size)), axis=1)
    products = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :lags]
    sums = np.cumsum(np.pad(frames**2, ((0, 0), (1, 0))), axis=1)
    ends = size - np.arange(lags)
    power = np.sqrt(sums[:, ends] * (sums[:, -1:] - sums[:, np.arange(lags)]))
    return np.asarray(products / np.maximum(power, 1e-12))


def _first_peak(correlation: Float64Array) -> Int64Array:
    """Return the shortest lag that is nearly as good as the best: its multiples are as good, but octaves too low."""
    good = correlation > 0.9 * correlation.max(axis=1, keepdims=True)
    falling = np.diff(correlation, axis=1, append=-np.inf) <= 0
    return np.asarray(np.argmax(good & falling, axis=1), np.int64)


def _vertex(left: Float64Array, middle: Float64Array, right: Float64Array) -> Float64Array:
    """Return the vertex of a parabola through three points, relative to the middle one."""
    bend = left - 2 * middle + right
    return np.clip(np.where(bend < 0, 0.5 * (left - right) / np.minimum(bend, -1e-12), 0.0), -0.5, 0.5)


def _quality(seconds: float, measured: ClipScores, spread: float | None) -> ReferenceQuality:
    noise: NoiseLevel = "no_speech"
    melody: Melody = "unknown"
    if (snr := measured.snr_db) is not None:
        noise = "clean" if snr >= 25 else "some" if snr >= 15 else "noisy"
    if spread is not None:
        melody = "lively" if spread >= 2 else "even" if spread >= 0.8 else "flat"
    silent = 1 - (measured.speech_ratio or 0.0)
    return ReferenceQuality(seconds, noise, measured.snr_db, melody, measured.clipping or 0.0, silent)
