"""Moves the periods of speech to a grid: every code holds a whole number of them, and one begins where a code begins.

On such speech the waveform follows from pitch and spectrum, which the codes tell, so a vocoder can learn it with a loss
of the waveform. Elsewhere the place of a period within a code is chance, and no vocoder can know it.
Pitch-synchronous overlap-add keeps the spectrum and the pace. What is not voiced stays as it is.
"""

import numpy as np
import numpy.typing as npt

from tools.tiny_voice.pitch import HOP, PitchTrack

RATE, CODE = 22_050, 1024  # samples a second and a code
PERIODS = 3  # of the window through which the phase of the fundamental is seen
FADE = 0.012  # seconds between moved and unmoved sound
FINE = 4  # sub-samples of a sample, between which is interpolated
FAR = 1.5  # periods: a mark has no neighbour beyond
TWICE = 2 * np.pi

Floats = npt.NDArray[np.float64]
Sound = npt.NDArray[np.float32]


def move_to_grid(sound: Sound, track: PitchTrack, block: int = 1) -> Sound:
    """Return speech of the same length whose voiced periods lie on the grid.

    Args:
        sound: The speech.
        track: Its pitch.
        block: Codes that together hold a whole number of periods.
    """
    if track.voiced.sum() < 2:
        return sound
    pitch = _pitch(track, len(sound))
    voiced = _voiced(track, len(sound))
    found = _crossings(_phase(sound.astype(np.float64), pitch))
    wanted = _crossings(_grid_phase(pitch, block * CODE))
    found, wanted = (marks[voiced[marks.astype(int)] > 0] for marks in (found, wanted))
    if len(found) < 3:
        return sound
    moved = _overlap_add(sound, found, wanted, pitch)
    heard = np.where(np.isnan(moved), 0, voiced)
    return (sound + heard * (np.nan_to_num(moved) - sound)).astype(np.float32)


def _pitch(track: PitchTrack, size: int) -> Floats:
    """Return the pitch of every sample, interpolated where nothing is voiced."""
    at = np.flatnonzero(track.voiced)
    return np.exp(np.interp(np.arange(size) / RATE, at * HOP, np.log(track.f0[at])))


def _voiced(track: PitchTrack, size: int) -> Floats:
    """Return a weight for every sample: 1 inside what is voiced, falling to 0 around it."""
    wide = np.convolve(track.voiced, np.ones(3), "same") > 0
    steps = np.interp(np.arange(size) / RATE, np.arange(len(wide)) * HOP, wide.astype(float))
    width = round(FADE * RATE)
    return np.convolve(np.round(steps), np.hanning(width) / np.hanning(width).sum(), "same").clip(0, 1)


def _phase(sound: Floats, pitch: Floats) -> Floats:
    """Return the phase of the fundamental in cycles, which no formant moves far."""
    rough = np.cumsum(pitch) / RATE
    window = np.hanning(round(PERIODS * RATE / float(np.median(pitch))) | 1)
    size = 1 << (len(sound) + len(window)).bit_length()  # sizes with large factors take five times as long
    lowered = np.fft.ifft(np.fft.fft(sound * np.exp(-1j * TWICE * rough), size) * np.fft.fft(window, size))
    begin = len(window) // 2
    rest = np.unwrap(np.angle(lowered[begin : begin + len(sound)])) / TWICE
    return np.maximum.accumulate(rough + rest)


def _grid_phase(pitch: Floats, block: int) -> Floats:
    """Return a phase that is whole wherever a block begins and changes as the pitch does."""
    size = len(pitch) // block * block
    own = np.cumsum(pitch[:size].reshape(-1, block), axis=1) / RATE
    whole = np.maximum(1, np.rint(own[:, -1]))
    place = np.arange(1, block + 1) / block
    bend = 3 * place**2 - 2 * place**3  # flat at both ends, so that no code begins with a jump of the pitch
    inside = own + (whole - own[:, -1])[:, None] * bend
    phase = (inside + (np.cumsum(whole) - whole)[:, None]).ravel()
    rest = phase[-1:].sum() + np.cumsum(pitch[size:]) / RATE
    return np.concatenate([[0.0], phase, rest])[: len(pitch)]


def _crossings(phase: Floats) -> Floats:
    """Return where a phase becomes a whole number, in samples and parts of them."""
    before, after = phase[:-1], phase[1:]
    at = np.flatnonzero(np.floor(after) > np.floor(before))
    return at + (np.floor(after[at]) - before[at]) / np.maximum(after[at] - before[at], 1e-9)


def _overlap_add(sound: Sound, found: Floats, wanted: Floats, pitch: Floats) -> Floats:
    """Put the nearest period of the sound at each wanted place; NaN where there is none."""
    period = RATE / pitch[wanted.astype(int)]
    right = np.searchsorted(found, wanted).clip(1, len(found) - 1)
    source = np.where(wanted - found[right - 1] < found[right] - wanted, found[right - 1], found[right])
    near = np.abs(source - wanted) < FAR * period
    wanted, source, period = wanted[near], source[near], period[near]
    reach = int(np.ceil(period.max(initial=1)))
    places = np.floor(wanted).astype(int)[:, None] + np.arange(-reach, reach + 1)
    away = places - wanted[:, None]
    weights = np.where(np.abs(away) < period[:, None], 0.5 + 0.5 * np.cos(np.pi * away / period[:, None]), 0)
    weights[(places < 0) | (places >= len(sound))] = 0
    places = places.clip(0, len(sound) - 1)
    values = _between(sound, source[:, None] + away)
    total = np.bincount(places.ravel(), weights.ravel(), len(sound))
    moved = np.bincount(places.ravel(), (weights * values).ravel(), len(sound))
    return np.where(total > 0.1, moved / np.maximum(total, 0.1), np.nan)


def _between(sound: Sound, places: Floats) -> Floats:
    """Return the sound at places between its samples."""
    size = len(sound)
    fine = np.fft.irfft(np.fft.rfft(sound), size * FINE) * FINE
    at = (places * FINE).clip(0, size * FINE - 2)
    first = at.astype(int)
    rest = at - first
    return np.asarray(fine[first] * (1 - rest) + fine[first + 1] * rest)
