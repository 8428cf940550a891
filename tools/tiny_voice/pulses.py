"""Moves the pitch pulses of speech to where the clock of the vocoder can place them, by PSOLA (Moulines 1990).

The clock tells frames apart within a turn of it. So each half turn gets a whole number of periods, and its first pulse
at its start: the waveform then depends on the clock and on what is said, and no longer on how many periods went before.
Pitch moves in steps of 23.4 Hz. The vocoder learned less with half of that: it would have to know the pitch better.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tools.tiny_voice.clock import FRAME, TURN
from tools.tiny_voice.pitch import HOP, track_pitch
from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE

SPAN = FRAME * TURN // 2  # samples
FEWEST = 5  # voiced frames that are worth moving
FUNDAMENTAL = round(0.02 * OUTPUT_RATE) | 1  # samples of the filter that separates it
OPPOSITE = 0.75  # of a period: from a maximum of the fundamental to the pulse of espeak-ng
FARTHEST = 1.5  # periods that a pulse is moved
OVERLAP = 1.05  # periods on each side of a pulse
UNVOICED = 60  # samples between two grains of what has no pitch
COVERED = 0.05  # window: below it nothing was laid

Floats = npt.NDArray[np.float64]


def move_pulses(sound: Samples) -> Samples:
    """Return speech at 24 kHz whose voiced parts have their pulses at places that the clock knows."""
    track = track_pitch(sound, OUTPUT_RATE)
    if track.voiced.sum() < FEWEST:
        return sound
    times, frames = np.arange(len(sound)), np.arange(len(track.f0)) * HOP * OUTPUT_RATE
    pitch = np.exp(np.interp(times, frames[track.voiced], np.log(track.f0[track.voiced])))
    voiced = np.interp(times, frames, track.voiced.astype(np.float64)) > 0.5
    pulses = _pulses(sound.astype(np.float64), pitch)
    pulses = pulses[voiced[pulses.astype(int)]]
    grains = _Grains(sound)
    for place, period in _places(pitch, voiced):
        if voiced[int(place)] and len(pulses):
            source = float(pulses[np.abs(pulses - place).argmin()])
            own = OUTPUT_RATE / pitch[int(place)]
            if abs(source - place) <= FARTHEST * own:
                grains.add(source, place, min(own, OVERLAP * period))
    for place in range(0, len(sound), UNVOICED):
        if not voiced[place]:
            grains.add(place, place, UNVOICED)
    return grains.sound(otherwise=np.where(voiced, 0, sound))


def _pulses(sound: Floats, pitch: Floats) -> Floats:
    """Find the pulses: the fundamental has one phase there, in the speech of espeak-ng."""
    turns = np.cumsum(pitch) / OUTPUT_RATE
    window = np.hanning(FUNDAMENTAL)
    size = 1 << (len(sound) + FUNDAMENTAL).bit_length()
    spectrum = np.fft.fft(sound * np.exp(-2j * np.pi * turns), size) * np.fft.fft(window, size)
    fundamental = np.fft.ifft(spectrum)[FUNDAMENTAL // 2 :][: len(sound)]
    phase = turns + np.unwrap(np.angle(fundamental)) / (2 * np.pi) + OPPOSITE
    before = np.flatnonzero(np.diff(np.floor(phase)) > 0)
    return np.asarray(before + (np.floor(phase[before + 1]) - phase[before]) / (phase[before + 1] - phase[before]))


def _places(pitch: Floats, voiced: npt.NDArray[np.bool_]) -> Iterator[tuple[float, float]]:
    """Yield the places of pulses and their period: equal within a span, with a whole number of them in it."""
    for start in range(0, len(pitch), SPAN):
        span = slice(start, start + SPAN)
        own = pitch[span][voiced[span]] if voiced[span].any() else pitch[span]
        count = max(2, round(float(np.exp(np.log(own).mean())) * SPAN / OUTPUT_RATE))
        for place in start + np.arange(count) * SPAN / count:
            if place < len(pitch):
                yield float(place), SPAN / count


class _Grains:
    """Windowed pieces of a sound that are laid at other places.

    Args:
        sound: Where they come from.
    """

    def __init__(self, sound: Samples) -> None:
        self._margin = SPAN
        self._source = np.pad(sound.astype(np.float64), self._margin)
        self._laid, self._windows = np.zeros_like(self._source), np.zeros_like(self._source)

    def add(self, source: float, place: float, reach: float) -> None:
        """Lay the piece around ``source`` at ``place``."""
        offsets = np.arange(-int(reach), int(reach) + 1).astype(np.float64)
        window = 0.5 + 0.5 * np.cos(np.pi * offsets / (reach + 1))
        middle = round(place)
        piece = self._between(source + middle - place + offsets + self._margin)
        target = slice(middle - int(reach) + self._margin, middle + int(reach) + 1 + self._margin)
        self._laid[target] += piece * window
        self._windows[target] += window

    def _between(self, places: Floats) -> Floats:
        """Return the source between its samples, by cubic interpolation."""
        whole = np.floor(places).astype(int)
        part = places - whole
        first, second, third, fourth = (self._source[whole + shift] for shift in (-1, 0, 1, 2))
        slope = third - first
        bend = 2 * first - 5 * second + 4 * third - fourth
        twist = 3 * (second - third) + fourth - first
        return np.asarray(second + 0.5 * part * (slope + part * (bend + part * twist)))

    def sound(self, otherwise: Floats) -> Samples:
        """Return what was laid, and something else where nothing was."""
        inner = slice(self._margin, -self._margin)
        laid, windows = self._laid[inner], self._windows[inner]
        filled = np.where(windows < COVERED, otherwise, laid / np.maximum(windows, 1))
        return np.asarray(filled, dtype=np.float32)
