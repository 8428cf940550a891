"""Pitch of a sound, by autocorrelation as Praat does it (Boersma 1993)."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

HOP = 0.005  # seconds
LOWEST, HIGHEST = 65.0, 420.0  # Hz
PERIODS = 3.0  # of the lowest pitch in a window
VOICED = 0.5  # correlation from which a frame counts as voiced
QUIET = 0.02  # of the loudest frame: below it nothing is voiced
CANDIDATES = 5  # peaks of a frame
OCTAVE = 0.02  # what an octave lower must gain in correlation
JUMP, SWITCH = 0.35, 0.14  # costs of a change by an octave, and between voiced and not

Floats = npt.NDArray[np.float64]
Samples = npt.NDArray[np.float32]


@dataclass(frozen=True)
class PitchTrack:
    """Pitch in frames of 5 ms.

    Attributes:
        f0: Hz; 0 where nothing is voiced.
    """

    f0: Floats

    @property
    def voiced(self) -> npt.NDArray[np.bool_]:
        return self.f0 > 0


def track_pitch(sound: Samples, rate: int) -> PitchTrack:
    """Find the pitch of a sound."""
    size = round(PERIODS / LOWEST * rate)
    hop = round(HOP * rate)
    padded = np.pad(sound.astype(np.float64), size // 2)
    frames = np.lib.stride_tricks.sliding_window_view(padded, size)[: len(sound) : hop]
    frames = frames - frames.mean(axis=1, keepdims=True)
    level = np.abs(frames).max(axis=1, initial=0)
    lags = int(rate / LOWEST) + 2
    correlation = _correlation(frames, lags) if len(frames) else np.zeros((0, lags))
    periods, strengths = _peaks(correlation, rate)
    strengths[level < QUIET * level.max(initial=0)] = 0
    return _best_path(periods, strengths, rate)


def _correlation(frames: Floats, lags: int) -> Floats:
    """Return the autocorrelation of each frame divided by that of the window."""
    window = np.hanning(frames.shape[1])
    length = 1 << (frames.shape[1] + lags).bit_length()

    def own(values: Floats) -> Floats:
        power = np.abs(np.fft.rfft(values, length)) ** 2
        return np.fft.irfft(power, length)[..., :lags]

    found, expected = own(frames * window), own(window)
    return np.asarray(found / np.maximum(found[:, :1], 1e-12) / (expected / expected[0]))


def _peaks(correlation: Floats, rate: int) -> tuple[Floats, Floats]:
    """Return the periods in samples and the strengths of the highest peaks of each frame."""
    shortest = int(rate / HIGHEST)
    inner = correlation[:, 1:-1]
    before, after = correlation[:, :-2], correlation[:, 2:]
    is_peak = (inner > before) & (inner >= after)
    is_peak[:, : shortest - 1] = False
    lag = np.arange(1, inner.shape[1] + 1)
    score = np.where(is_peak, inner - OCTAVE * np.log2(lag / shortest), -1.0)
    best = np.argsort(-score, axis=1)[:, :CANDIDATES]
    rows = np.arange(len(best))[:, None]
    left, middle, right = before[rows, best], inner[rows, best], after[rows, best]
    bend = left - 2 * middle + right
    shift = np.where(np.abs(bend) > 1e-9, 0.5 * (left - right) / np.where(bend == 0, 1, bend), 0.0)
    strengths = np.where(score[rows, best] > -1, middle - 0.25 * (left - right) * shift, 0.0)
    return lag[best] + shift.clip(-0.5, 0.5), strengths.clip(0, 1)


def _best_path(periods: Floats, strengths: Floats, rate: int) -> PitchTrack:
    """Choose one candidate of each frame, or none, so that the pitch seldom jumps."""
    if not len(periods):
        return PitchTrack(np.zeros(0))
    octaves = np.log2(rate / periods)
    gain = np.column_stack([np.full(len(periods), VOICED), strengths - OCTAVE * np.log2(periods * HIGHEST / rate)])
    cost = np.full((CANDIDATES + 1, CANDIDATES + 1), SWITCH)
    cost[0, 0] = 0
    total, back = gain[0], np.zeros(gain.shape, np.int64)
    for frame in range(1, len(gain)):
        cost[1:, 1:] = JUMP * np.abs(octaves[frame - 1][:, None] - octaves[frame][None])
        through = total[:, None] - cost
        back[frame] = through.argmax(axis=0)
        total = through.max(axis=0) + gain[frame]
    path = np.zeros(len(gain), np.int64)
    path[-1] = total.argmax()
    for frame in range(len(gain) - 1, 0, -1):
        path[frame - 1] = back[frame, path[frame]]
    rows, chosen = np.arange(len(path)), path - 1
    return PitchTrack(np.where(chosen >= 0, rate / periods[rows, chosen], 0.0))
