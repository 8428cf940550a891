"""Faster or slower speech at the same pitch.

Short windows of the sound are laid over each other closer together or farther apart than they were (WSOLA: Verhelst and
Roelands, 1993). Each window is taken where it best continues what was laid before it, so waves meet in step and nothing
is smeared, as the phases of a vocoder would be.
"""

import numpy as np

from utils.core.errors import AudioError
from utils.media.audio import Samples

SLOWEST, FASTEST = 0.5, 2.0
HOP = 0.015  # seconds from one window to the next in the result; a window is two of them
REACH = 0.009  # seconds that a window may move to either side: together a period of the lowest voice (55 Hz)
SILENCE = 1e-14  # energy of a window


def stretch(samples: Samples, rate: int, speed: float) -> Samples:
    """Change how fast a sound is, and not how high.

    Args:
        samples: One channel.
        rate: Its samples per second.
        speed: 2.0: twice as fast and half as long; from 0.5 to 2.0.
    """
    stretcher = Stretcher(rate, speed)
    return np.concatenate([stretcher.push(samples), stretcher.finish()])


class Stretcher:
    """The same for a sound that comes in parts: what it returns, joined, is what ``stretch`` makes of the whole."""

    def __init__(self, rate: int, speed: float) -> None:
        if not SLOWEST <= speed <= FASTEST:
            raise AudioError(
                f"Speech cannot be made {speed:g} times as fast.", hint=f"Choose from {SLOWEST:g} to {FASTEST:g}."
            )
        self.speed = speed
        self.hop = max(2, round(HOP * rate))
        self.reach = max(1, round(REACH * rate))
        self._window = np.hanning(2 * self.hop + 1)[:-1].astype(np.float32)  # two, a hop apart, add up to one
        self._lead = self.hop + self.reach  # silence before the sound, for the first windows to reach into
        self._heard = np.zeros(self._lead, np.float32)
        self._first = -self._lead  # position in the sound at which ``_heard`` begins
        self._received = 0
        self._laid = 0  # windows so far; the first is centred on the first sample
        self._place = -self.hop  # where in the sound the last window was taken
        self._tail = np.zeros(self.hop, np.float32)  # its second half, waiting for the next

    def push(self, samples: Samples) -> Samples:
        """Take the next part and return what is ready; about 40 ms of the sound wait for what follows."""
        self._received += samples.size
        if self.speed == 1:
            return samples
        self._heard = np.concatenate([self._heard, samples.astype(np.float32, copy=False)])
        return self._joined([])

    def finish(self) -> Samples:
        """Return the rest, so that the whole is as long as it has to be to the sample."""
        if self.speed == 1:
            return np.zeros(0, np.float32)
        wanted = round(self._received / self.speed)
        done = max(0, self._laid - 1) * self.hop
        missing = -(-(wanted - done) // self.hop) + 1  # windows
        silence = round((missing + 1) * self.hop * self.speed) + 4 * self._lead
        self._heard = np.concatenate([self._heard, np.zeros(silence, np.float32)])
        return self._joined([])[: wanted - done]

    def _joined(self, ready: list[Samples]) -> Samples:
        while (target := self._next()) is not None:
            ready.append(self._laid_at(target))
        self._forget()
        return np.concatenate([np.zeros(0, np.float32), *ready])

    def _next(self) -> int | None:
        """Return where the next window would be taken from if nothing had to fit, once all that it may need is here."""
        target = round(self._laid * self.hop * self.speed) - self.hop
        needed = max(target + self.reach, self._place + self.hop) + 2 * self.hop
        return target if needed <= self._first + self._heard.size else None

    def _laid_at(self, target: int) -> Samples:
        """Lay the window that lies near a place and goes on where the last one ends; return what no other reaches."""
        place = target
        if self._laid:
            start = target - self.reach - self._first
            near = self._heard[start : start + self.hop + 2 * self.reach]
            follow = self._place + self.hop - self._first
            place = target - self.reach + alike(near, self._heard[follow : follow + self.hop])
        taken = self._heard[place - self._first :][: 2 * self.hop] * self._window
        ready = self._tail + taken[: self.hop]
        self._tail = taken[self.hop :]
        self._place = place
        self._laid += 1
        return ready if self._laid > 1 else ready[:0]  # the first half of the first window is silence before the sound

    def _forget(self) -> None:
        """Drop what no later window can reach."""
        target = round(self._laid * self.hop * self.speed) - self.hop
        keep = min(target - self.reach, self._place + self.hop) - self._first
        if keep > 0:
            self._heard = self._heard[keep:]
            self._first += keep


def alike(near: Samples, wanted: Samples) -> int:
    """Return where in a sound another one fits best: where the two differ least.

    Loudness counts: the largest correlation would fit the end of a sound to its middle, and let it end twice.
    In silence every place fits, and the middle is taken.
    """
    size = 1 << (near.size - 1).bit_length()
    product = np.fft.irfft(np.fft.rfft(near, size) * np.fft.rfft(wanted, size).conj(), size)
    energy = np.concatenate([np.zeros(1), np.cumsum(near.astype(np.float64) ** 2)])
    places = near.size - wanted.size + 1
    if energy[-1] < SILENCE:
        return places // 2
    return int(np.argmax(2 * product[:places] - (energy[wanted.size :] - energy[:places])))
