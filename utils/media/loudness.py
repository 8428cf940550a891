"""Loudness by ITU-R BS.1770: measure it, and bring clips and speech to a target without clipping."""

import functools
import math
from typing import TYPE_CHECKING

import numpy as np

from utils.media.audio import NO_SAMPLES, Samples, resample

if TYPE_CHECKING:
    from pyloudnorm import Meter

TARGET_LUFS = -23.0  # of training clips, EBU R 128
LARGEST_PEAK = 10 ** (-1 / 20)  # -1 dB
OVERSAMPLING = 4  # BS.1770 asks for it to find the peaks between samples
BLOCK_SECONDS = 0.4  # of BS.1770: there is no loudness of less
MAX_GAIN = 10 ** (30 / 20)  # so that noise is not amplified without end
HEARD_SECONDS = 6.0  # of speech, that decide about the next chunk
RAMP_SECONDS = 0.1  # from the gain of one chunk to that of the next
LOOKAHEAD_SECONDS = 0.002  # in which the limiter lowers the level before a peak
FILTER_SAMPLES = 16  # on each side, that affect the peaks between samples


def loudness(samples: Samples, rate: int) -> float | None:
    """Return the loudness in LUFS; None for silence and for less than 0.4 s."""
    if samples.size < BLOCK_SECONDS * rate:
        return None
    with np.errstate(divide="ignore"):
        value = float(_meter(rate).integrated_loudness(samples))
    return value if math.isfinite(value) else None


@functools.cache
def _meter(rate: int) -> "Meter":
    from pyloudnorm import Meter

    return Meter(rate)


def levelled(samples: Samples, rate: int, lufs: float | None) -> Samples:
    """Bring a clip of known loudness to -23 LUFS, as far as its true peaks stay below -1 dB; silence is unchanged."""
    if lufs is None or not np.isfinite(lufs):
        return samples
    peak = float(np.abs(resample(samples, rate, rate * OVERSAMPLING)).max(initial=1e-9))
    return samples * np.float32(min(10 ** ((TARGET_LUFS - lufs) / 20), LARGEST_PEAK / peak))


def normalized(samples: Samples, rate: int, target: float) -> Samples:
    """Bring speech to a loudness in LUFS, with true peaks below -1 dB; a target of 0 leaves it unchanged."""
    normalizer = Normalizer(rate, target)
    return np.concatenate([normalizer.push(samples), normalizer.finish()])


class Normalizer:
    """Brings speech that arrives in chunks to a loudness; speech in one chunk gets one gain.

    The gain of a chunk follows the loudness of everything received so far, so the first chunk is right on its own.
    A target of 0 LUFS leaves the speech unchanged.
    """

    def __init__(self, rate: int, target: float) -> None:
        self.rate = rate
        self.target = target
        self._heard = NO_SAMPLES  # the newest seconds
        self._gain: float | None = None  # of the last chunk
        self._make_up: float | None = None  # for what the limiter takes away, measured on the first chunk
        self._limiter = _Limiter(rate)

    def push(self, samples: Samples) -> Samples:
        """Add the next chunk and return what is ready; about 6 ms wait for what follows."""
        if not self.target or not samples.size:
            return samples
        size = max(samples.size, round(HEARD_SECONDS * self.rate))
        self._heard = np.concatenate([self._heard, samples])[-size:]
        gain = self._next_gain()
        first = gain if self._gain is None else self._gain
        self._gain = gain
        gains = np.full(samples.size, gain, np.float32)
        ramp = min(samples.size, round(RAMP_SECONDS * self.rate))
        gains[:ramp] = np.linspace(first, gain, ramp)
        return self._limiter.push(samples * gains)

    def finish(self) -> Samples:
        return self._limiter.finish() if self.target else NO_SAMPLES

    def _next_gain(self) -> float:
        heard = np.resize(self._heard, max(self._heard.size, math.ceil(BLOCK_SECONDS * self.rate)))
        lufs = loudness(heard, self.rate)
        if lufs is None:  # silence so far
            return 1.0 if self._gain is None else self._gain
        gain = min(MAX_GAIN, 10 ** ((self.target - lufs) / 20))
        if self._make_up is None:
            limiter = _Limiter(self.rate)
            limited = np.concatenate([limiter.push(heard * np.float32(gain)), limiter.finish()])
            lost = lufs + 20 * math.log10(gain) - (loudness(limited, self.rate) or self.target)
            self._make_up = 10 ** (max(0.0, lost) / 20)
        return gain * self._make_up


class _Limiter:
    """Lowers the level around peaks above -1 dB; what it returns does not depend on the size of the chunks."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self._reach = max(1, round(LOOKAHEAD_SECONDS * rate))
        self._context = 2 * self._reach + FILTER_SAMPLES  # samples on each side that affect the gain
        self._buffer = np.zeros(self._context, np.float32)  # starts with samples that were returned already

    def push(self, samples: Samples) -> Samples:
        self._buffer = np.concatenate([self._buffer, samples])
        ready = self._limited()[self._context : max(self._context, self._buffer.size - self._context)]
        self._buffer = self._buffer[ready.size :]
        return ready

    def finish(self) -> Samples:
        return self._limited()[self._context :]

    def _limited(self) -> Samples:
        from scipy.ndimage import minimum_filter1d
        from scipy.signal import resample_poly

        fine = np.abs(resample_poly(self._buffer, OVERSAMPLING, 1)).reshape(-1, OVERSAMPLING)
        peaks = np.maximum(fine.max(axis=1), np.abs(self._buffer))
        gain = np.minimum(1.0, LARGEST_PEAK / np.maximum(peaks, LARGEST_PEAK))
        if gain.min() == 1:
            return self._buffer
        size = 2 * self._reach + 1
        lowest = minimum_filter1d(gain, size, mode="nearest")
        window = np.hanning(size + 2)[1:-1]
        smooth = np.convolve(np.pad(lowest, self._reach, mode="edge"), window / window.sum(), mode="valid")
        return self._buffer * smooth.astype(np.float32)
