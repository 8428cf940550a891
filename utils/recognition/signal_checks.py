"""Measure what a recording lost before it came here: clipping, band limit, reverberation, and the noise floor.

They are measured on up to a minute of its speech. Clips of it stay in use; the warning gives the measured value.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from utils.core.facts import WarningFact
from utils.media import audio
from utils.media.arrays import Float64Array
from utils.media.audio import Samples
from utils.recognition import rumble
from utils.recognition.facts import BandLimited, Hum, NoiseFloor, Offset, Reverberant
from utils.recognition.spans import Span

RATE = 24_000
EXCERPTS = 12  # of speech, spread over the recording
EXCERPT_SECONDS = 5.0
PAUSE_SECONDS = 0.4  # around each
MIN_SPEECH_SECONDS = 8.0  # a shorter recording is a clip of a dataset: thousands of them would be warned about
FRAME = RATE // 100  # 10 ms
TELEPHONE_HZ = 5_500.0  # below it: a telephone, or a codec of a few kbit/s
AUDIBLE = 55.0  # dB below the loudest part of the spectrum
REVERBERANT_SECONDS = 0.4  # time in which a sound decays by 60 dB
NOISE_BELOW_SPEECH = 22.0  # dB
WIDTH = 1024  # of a spectrum
BINS = 50  # of a histogram of levels, 2 % of the peak each
PLATEAU_FROM = 0.7  # of the peak: a clipped sound that was resampled or stored with loss overshoots its plateau
PLATEAU_RATIO = 4.0  # how many more samples the plateau has than the levels below it
HUM_BELOW_VOICE = -15.0  # dB against the rest of the sound
OFFSET = 0.3  # of the deviation of the sound
DECAY_FRAMES = 6  # 60 ms
MIN_DECAYS = 8
SILENCE = 1e-12


class Signal(NamedTuple):
    """What was measured on some speech of one voice in one room."""

    hum_db: float  # against the rest of the sound
    hum_hertz: float
    offset: float  # in deviations of the sound
    band: float  # hertz
    decay: float | None  # seconds by 60 dB
    noise_db: float  # below the speech

    @property
    def problems(self) -> list[WarningFact]:
        """Return what was lost, with the measured values."""
        found = [
            Hum(self.hum_hertz, -self.hum_db) if self.hum_db > HUM_BELOW_VOICE else None,
            Offset(self.offset) if self.offset > OFFSET else None,
            BandLimited(self.band) if self.band < TELEPHONE_HZ else None,
            Reverberant(self.decay) if self.decay is not None and self.decay > REVERBERANT_SECONDS else None,
            NoiseFloor(self.noise_db) if self.noise_db < NOISE_BELOW_SPEECH else None,
        ]
        return [problem for problem in found if problem]


def find_problems(path: Path, speech: Sequence[Span]) -> list[WarningFact]:
    """Return what a recording with this speech has lost."""
    if sum(span.seconds for span in speech) < MIN_SPEECH_SECONDS:
        return []
    return measure_signal(_excerpts(path, speech)).problems


def measure_signal(excerpts: Sequence[Samples]) -> Signal:
    """Measure speech at ``RATE`` with the pauses around it; at least one of the excerpts has ``WIDTH`` samples."""
    hum, hertz = rumble.hum(np.concatenate(excerpts), RATE)
    offset = max(map(rumble.offset, excerpts))
    steadied = [rumble.steadied(samples, RATE) for samples in excerpts]
    band = band_limit(np.concatenate(steadied))
    return Signal(hum, hertz, offset, band, reverberation(steadied), noise_below_speech(steadied))


def plateau_share(samples: Samples) -> float:
    """Return the share of samples on a plateau at the peaks of either side, which clipping leaves at any level."""
    if not samples.size:
        return 0.0
    return sum(_plateau(side[side > 0]) for side in (samples, -samples)) / samples.size


def _plateau(side: Samples) -> float:
    """Count the samples of one side on a plateau; without clipping, higher levels have fewer samples."""
    if side.size < BINS:
        return 0.0
    counts, _ = np.histogram(side, BINS, (0.0, float(side.max())))
    first = int(PLATEAU_FROM * BINS)
    below = np.array([counts[level - 4 : level - 1].mean() for level in range(first, BINS)])
    excess = counts[first:] - PLATEAU_RATIO * np.maximum(below, 1.0)
    best = int(excess.argmax())
    return float(counts[first + best :].sum()) if excess[best] > 0 else 0.0


def band_limit(samples: Samples) -> float:
    """Return the frequency up to which loud moments stand out of what is at the upper end of the spectrum."""
    frames = windows(samples, WIDTH)
    power = np.abs(np.fft.rfft(frames * np.hanning(WIDTH), axis=1)) ** 2
    loud = power[power.sum(axis=1) >= np.quantile(power.sum(axis=1), 0.5)]
    levels = 10 * np.log10(loud.mean(axis=0) + SILENCE)
    smooth = np.convolve(levels, np.ones(5) / 5, "same")[2:-2]
    floor = float(smooth[-len(smooth) // 20 :].mean())
    if floor > smooth.max() - AUDIBLE - 10:  # noise up to the end hides where the speech ends
        return RATE / 2
    above = np.flatnonzero(smooth > smooth.max() - AUDIBLE)
    return float((above[-1] + 2) * RATE / WIDTH)


def reverberation(excerpts: Sequence[Samples]) -> float | None:
    """Estimate the decay time from the steepest falls of the level, which a room limits; None without any."""
    rates = []
    for samples in excerpts:
        levels = frame_levels(samples)
        floor = np.quantile(levels, 0.05)
        falls = levels[:-DECAY_FRAMES] - levels[DECAY_FRAMES:]
        usable = (levels[:-DECAY_FRAMES] > floor + 15) & (levels[DECAY_FRAMES:] > floor + 4) & (falls > 0)
        rates += (falls[usable] * 100 / DECAY_FRAMES).tolist()
    if len(rates) < MIN_DECAYS:
        return None
    return 60 / float(np.quantile(rates, 0.9))


def noise_below_speech(excerpts: Sequence[Samples]) -> float:
    """Return how far the quietest moments are below the speech, in dB."""
    levels = np.concatenate([frame_levels(samples) for samples in excerpts])
    return float(np.quantile(levels, 0.9) - np.quantile(levels, 0.05))


def frame_levels(samples: Samples) -> Float64Array:
    """Return the level of each 10 ms in dB."""
    power = np.square(windows(samples, FRAME).astype(np.float64)).mean(axis=1)
    return np.asarray(10 * np.log10(power + SILENCE))


def windows(samples: Samples, size: int) -> Samples:
    """Cut a sound into windows; what is left at its end is dropped."""
    return samples[: samples.size - samples.size % size].reshape(-1, size)


def _excerpts(path: Path, speech: Sequence[Span]) -> list[Samples]:
    """Read speech segments spread over a recording."""
    chosen = speech[:: max(1, math.ceil(len(speech) / EXCERPTS))]
    parts = [read_excerpt(path, span) for span in chosen]
    return [part for part in parts if part.size > WIDTH]


def read_excerpt(path: Path, speech: Span) -> Samples:
    """Read the beginning of some speech, with the pause before it, and after it if it is short."""
    start = max(0.0, speech.start - PAUSE_SECONDS)
    end = min(speech.end, speech.start + EXCERPT_SECONDS)
    return audio.load(path, RATE, start, end + PAUSE_SECONDS)
