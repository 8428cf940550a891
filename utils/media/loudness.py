"""Loudness normalization: no DC offset, -23 LUFS, and true peaks below -1 dB."""

import numpy as np

from utils.media.audio import Samples, resample

TARGET_LUFS = -23.0  # EBU R 128
LARGEST_PEAK = 10 ** (-1 / 20)
OVERSAMPLING = 4  # ITU-R BS.1770 asks for it to find the peaks between samples


def centred(samples: Samples) -> Samples:
    """Remove the DC offset."""
    return samples - samples.mean(dtype=np.float64).astype(np.float32) if samples.size else samples


def levelled(samples: Samples, rate: int, lufs: float | None) -> Samples:
    """Bring a clip of known loudness to the target, as far as its peaks allow; silence is unchanged."""
    if lufs is None or not np.isfinite(lufs):
        return samples
    peak = float(np.abs(resample(samples, rate, rate * OVERSAMPLING)).max(initial=1e-9))
    gain = min(10 ** ((TARGET_LUFS - lufs) / 20), LARGEST_PEAK / peak)
    return samples * np.float32(gain)
