"""What lies below the voice: an offset of the recorder and hum of the mains, which are neither noise nor speech.

Both are removed before anything is measured: an offset looks like clipping, and hum fills the pauses.
"""

import functools

import numpy as np

from utils.media.arrays import Float64Array
from utils.media.audio import Samples

LOWEST_HUM = 20.0  # Hz; what is below cannot be heard
LOWEST_VOICE = 70.0  # Hz; the deepest voices begin above it
ORDER = 4
MIN_SAMPLES = 64  # a shorter sound has no frequencies below the voice
SILENCE = 1e-12


def steadied(samples: Samples, rate: int) -> Samples:
    """Remove what lies below the voice, without a delay."""
    if samples.size < MIN_SAMPLES:
        return samples - samples.mean() if samples.size else samples
    from scipy.signal import sosfiltfilt

    filtered: Samples = sosfiltfilt(_high_pass(rate), samples).astype(np.float32)
    return filtered


def offset(samples: Samples) -> float:
    """Return the constant part, as a multiple of the deviation of the rest."""
    return float(abs(samples.mean()) / (samples.std() + SILENCE)) if samples.size else 0.0


def powers(frames: Samples) -> Samples:
    """Return the power of each frame without its constant part."""
    power: Samples = np.einsum("ij,ij->i", frames, frames) / frames.shape[1] - frames.mean(axis=1) ** 2
    return power


def hum(samples: Samples, rate: int) -> tuple[float, float]:
    """Return how loud hum below the voice is compared with the rest, in dB, and where it is loudest, in Hz."""
    if samples.size < rate / LOWEST_HUM:
        return -np.inf, 0.0
    from scipy.fft import next_fast_len, rfft

    size = next_fast_len(samples.size, real=True)  # a prime number of samples takes ten times as long
    power = np.abs(rfft(samples - samples.mean(), size)) ** 2
    frequencies = np.fft.rfftfreq(size, 1 / rate)
    low = (frequencies > LOWEST_HUM) & (frequencies < LOWEST_VOICE)
    level = 10 * np.log10((power[low].sum() + SILENCE) / (power[frequencies >= LOWEST_VOICE].sum() + SILENCE))
    return float(level), float(frequencies[low][power[low].argmax()])


@functools.cache
def _high_pass(rate: int) -> Float64Array:
    from scipy.signal import butter

    sections: Float64Array = butter(ORDER, LOWEST_VOICE, "highpass", fs=rate, output="sos")
    return sections
