"""Faster or slower speech at the same pitch, by FFmpeg's atempo filter."""

from collections.abc import Iterator
from fractions import Fraction

import av
import av.filter
import numpy as np

from utils.core.errors import AudioError
from utils.media.audio import FADE_SECONDS, Samples

MIN_SPEED, MAX_SPEED = 0.5, 2.0
TAIL_SECONDS = 0.03  # held back until the end, to be cut to the exact length and faded out


def stretch(samples: Samples, rate: int, speed: float) -> Samples:
    """Change the speed of a mono sound; 2.0 makes it twice as fast and half as long."""
    stretcher = Stretcher(rate, speed)
    return np.concatenate([stretcher.push(samples), stretcher.finish()])


class Stretcher:
    """Changes the speed of a sound that arrives in parts; the parts returned, joined, equal ``stretch`` of the whole.

    Args:
        rate: Samples per second.
        speed: From 0.5 to 2.0. At 1.0 the samples pass unchanged.
    """

    def __init__(self, rate: int, speed: float) -> None:
        if not MIN_SPEED <= speed <= MAX_SPEED:
            raise AudioError(
                f"A speed of {speed:g} is not supported.", hint=f"Choose a speed from {MIN_SPEED:g} to {MAX_SPEED:g}."
            )
        self.speed = speed
        self.rate = rate
        self._received = self._returned = 0
        self._tail = np.zeros(0, np.float32)
        if speed != 1:
            self._graph = av.filter.Graph()
            source = self._graph.add_abuffer(format="flt", sample_rate=rate, layout="mono", time_base=Fraction(1, rate))
            self._graph.link_nodes(source, self._graph.add("atempo", f"{speed}"), self._graph.add("abuffersink"))
            self._graph.configure()

    def push(self, samples: Samples) -> Samples:
        """Add the next part and return what is ready; the last tenth of a second waits for what follows."""
        if self.speed == 1 or not samples.size:
            return samples
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples[None], np.float32), "flt", "mono")
        frame.sample_rate, frame.pts, frame.time_base = self.rate, self._received, Fraction(1, self.rate)
        self._received += samples.size
        self._graph.push(frame)
        self._tail = np.concatenate([self._tail, *self._filtered()])
        ready, self._tail = np.split(self._tail, [max(0, self._tail.size - round(TAIL_SECONDS * self.rate))])
        self._returned += ready.size
        return ready

    def finish(self) -> Samples:
        """Return the rest, so that the whole has its exact length."""
        if self.speed == 1 or not self._received:
            return np.zeros(0, np.float32)
        self._graph.push(None)
        missing = round(self._received / self.speed) - self._returned
        rest = np.concatenate([self._tail, *self._filtered()])[:missing]
        fade = min(rest.size, round(FADE_SECONDS * self.rate))
        rest[rest.size - fade :] *= np.linspace(1, 0, fade, dtype=np.float32)
        return np.pad(rest, (0, missing - rest.size))

    def _filtered(self) -> Iterator[Samples]:
        try:
            while True:
                yield self._graph.pull().to_ndarray()[0]
        except (av.error.BlockingIOError, av.error.EOFError):  # the filter waits for input, or has ended
            return
