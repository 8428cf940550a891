"""Faster or slower speech at the same pitch, by waveform-similarity overlap-add (WSOLA, Verhelst and Roelands, 1993).

Sounds stay within 12 ms of their place; FFmpeg's atempo filter did not (docs/decisions/0005-speech.md).
"""

import numpy as np

from utils.media.audio import NO_SAMPLES, Samples
from utils.media.facts import SpeedError

MIN_SPEED = 0.25
MAX_SPEED = 4.0
HOP = 0.015  # seconds between windows in the output; a window is two hops long
REACH = 0.009  # seconds that a window may move to either side; both cover a period of the lowest voice (55 Hz)
SILENCE = 1e-14  # energy of a window


def stretch(samples: Samples, rate: int, speed: float) -> Samples:
    """Change the speed of a mono sound; 2.0 makes it twice as fast and half as long."""
    stretcher = Stretcher(rate, speed)
    return np.concatenate([stretcher.push(samples), stretcher.finish()])


class Stretcher:
    """Changes the speed of a sound that arrives in parts; the parts returned, joined, equal ``stretch`` of the whole.

    The speed is from 0.25 to 4. At 1.0 the samples pass unchanged.
    """

    def __init__(self, rate: int, speed: float) -> None:
        if not MIN_SPEED <= speed <= MAX_SPEED:
            raise SpeedError(speed)
        self.speed = speed
        self.hop = max(2, round(HOP * rate))
        self.reach = max(1, round(REACH * rate))
        self._window = np.hanning(2 * self.hop + 1)[:-1].astype(np.float32)  # two of them, one hop apart, add up to one
        self._lead = self.hop + self.reach  # silence before the sound, which the first windows may use
        self._input = np.zeros(self._lead, np.float32)
        self._first = -self._lead  # position of ``_input`` in the sound
        self._received = 0
        self._windows = 0  # added so far; the first is centred on the first sample
        self._position = -self.hop  # of the last window in the sound
        self._tail = np.zeros(self.hop, np.float32)  # its second half, for the overlap with the next

    def push(self, samples: Samples) -> Samples:
        """Add the next part and return what is ready; about 40 ms wait for what follows."""
        self._received += samples.size
        if self.speed == 1:
            return samples
        self._input = np.concatenate([self._input, samples.astype(np.float32, copy=False)])
        return self._output()

    def finish(self) -> Samples:
        """Return the rest, so that the whole has its exact length."""
        if self.speed == 1:
            return NO_SAMPLES
        length = round(self._received / self.speed)
        done = max(0, self._windows - 1) * self.hop
        missing = -(-(length - done) // self.hop) + 1  # windows
        silence = round((missing + 1) * self.hop * self.speed) + 4 * self._lead
        self._input = np.concatenate([self._input, np.zeros(silence, np.float32)])
        return self._output()[: length - done]

    def _output(self) -> Samples:
        """Add all windows whose input is complete and return the samples that no later window changes."""
        ready = [NO_SAMPLES]
        while True:
            target = round(self._windows * self.hop * self.speed) - self.hop  # ideal position of the next window
            follow = self._position + self.hop  # where the last window would go on
            if max(target + self.reach, follow) + 2 * self.hop > self._first + self._input.size:
                break
            ready.append(self._add_window(target, follow))
        unused = min(target - self.reach, follow) - self._first  # no later window reaches that far back
        if unused > 0:
            self._input = self._input[unused:]
            self._first += unused
        return np.concatenate(ready)

    def _add_window(self, target: int, follow: int) -> Samples:
        """Add the window near a position that best continues the last one; return the samples it completes."""
        position = target
        if self._windows:
            start = target - self.reach - self._first
            near = self._input[start : start + self.hop + 2 * self.reach]
            pattern = self._input[follow - self._first :][: self.hop]
            position = target - self.reach + best_match(near, pattern)
        window = self._input[position - self._first :][: 2 * self.hop] * self._window
        ready = self._tail + window[: self.hop]
        self._tail = window[self.hop :]
        self._position = position
        self._windows += 1
        return ready if self._windows > 1 else ready[:0]  # the first half of the first window lies before the sound


def best_match(near: Samples, pattern: Samples) -> int:
    """Return the offset at which a pattern differs least from a sound; in silence, the middle.

    The difference counts, not the correlation, which would match the end of a sound to its louder middle.
    """
    size = 1 << (near.size - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(near, size) * np.fft.rfft(pattern, size).conj(), size)
    energy = np.concatenate([np.zeros(1), np.cumsum(near.astype(np.float64) ** 2)])
    offsets = near.size - pattern.size + 1
    if energy[-1] < SILENCE:
        return offsets // 2
    return int(np.argmax(2 * product[:offsets] - (energy[pattern.size :] - energy[:offsets])))
