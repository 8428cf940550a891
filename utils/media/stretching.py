"""Faster or slower speech at the same pitch, with FFmpeg's atempo filter."""

from fractions import Fraction

import av
import numpy as np

from utils.core.errors import AudioError
from utils.media.audio import Samples

MIN_SPEED, MAX_SPEED = 0.5, 2.0
BLOCK = 256  # samples; the filter returns what it made of a frame only when it gets the next one
SILENCE_SECONDS = 0.2  # after the sound, because the filter drops the last incomplete window


def stretch(samples: Samples, rate: int, speed: float) -> Samples:
    """Change the speed of a mono sound; 2.0 makes it twice as fast and half as long."""
    stretcher = Stretcher(rate, speed)
    return np.concatenate([stretcher.push(samples), stretcher.finish()])


class Stretcher:
    """Changes the speed of a sound that arrives in parts; the parts returned, joined, equal ``stretch`` of the whole.

    The speed is from 0.5 to 2.0. At 1.0 the samples pass unchanged.
    """

    def __init__(self, rate: int, speed: float) -> None:
        if not MIN_SPEED <= speed <= MAX_SPEED:
            raise AudioError(
                f"A speed of {speed:g} is not supported.", hint=f"Choose a speed from {MIN_SPEED:g} to {MAX_SPEED:g}."
            )
        self.rate, self.speed = rate, speed
        self._received = self._returned = 0
        self._graph = av.filter.Graph()
        source = self._graph.add_abuffer(sample_rate=rate, format="flt", layout="mono", time_base=Fraction(1, rate))
        self._graph.link_nodes(source, self._graph.add("atempo", str(speed)), self._graph.add("abuffersink"))
        self._graph.configure()

    def push(self, samples: Samples) -> Samples:
        """Add the next part and return what is ready; up to 0.1 s waits for what follows."""
        if self.speed == 1:
            return samples
        for start in range(0, samples.size, BLOCK):
            block = samples[start : start + BLOCK].astype(np.float32, copy=False)
            frame = av.AudioFrame.from_ndarray(block[None], format="flt", layout="mono")
            frame.sample_rate, frame.pts = self.rate, self._received
            self._received += block.size
            self._graph.push(frame)
        return self._ready()

    def finish(self) -> Samples:
        """Return the rest, so that the whole has its exact length."""
        missing = round(self._received / self.speed) - self._returned
        if self.speed == 1 or missing <= 0:
            return np.zeros(0, np.float32)
        silence = np.zeros(round(SILENCE_SECONDS * self.rate), np.float32)
        parts = [self.push(silence)]
        self._graph.push(None)
        return np.concatenate([*parts, self._ready()])[:missing]

    def _ready(self) -> Samples:
        parts = [np.zeros(0, np.float32)]
        while True:
            try:
                parts.append(self._graph.pull().to_ndarray()[0])
            except (av.error.BlockingIOError, av.error.EOFError):
                ready = np.concatenate(parts)
                self._returned += ready.size
                return ready
