"""Stretches of a recording: where they are, and how they sound."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from utils.media import audio
from utils.media.audio import NO_SAMPLES, Samples
from utils.media.rates import RATE


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a recording, in seconds from its start."""

    start: float
    end: float

    @classmethod
    def over(cls, spans: "Sequence[Span]") -> "Span":
        """Return the span from the start of the first one to the end of the last."""
        return cls(spans[0].start, spans[-1].end)

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def middle(self) -> float:
        return (self.start + self.end) / 2

    def within(self, start: float, end: float) -> "Span":
        """Return the part between two times; its seconds are negative where there is none."""
        return Span(max(self.start, start), min(self.end, end))

    def overlap(self, other: "Span") -> float:
        """Return the seconds that two spans share; negative seconds lie between them."""
        return self.within(other.start, other.end).seconds


def near(spans: Sequence[Span], start: float, end: float) -> slice:
    """Return which of some spans, in order without overlap, lie at least partly between two times."""
    first = bisect_right(spans, start, key=lambda span: span.end)
    return slice(first, bisect_left(spans, end, key=lambda span: span.start))


@dataclass(frozen=True, slots=True)
class Cue:
    """A subtitle: a stretch of a recording and its text."""

    span: Span
    text: str
    speakers: tuple[str, ...] = ()  # if the file names them


def read_spans(path: Path, spans: Sequence[Span], rate: int = RATE) -> Iterator[Samples]:
    """Yield the audio of each span, in order of their starts, in one pass over the file."""
    blocks = audio.stream(path, rate)
    held = NO_SAMPLES
    first = 0
    for span in spans:
        begin = round(span.start * rate)
        end = round(span.end * rate)
        while first + held.size < end:
            block = next(blocks, None)
            if block is None:
                break
            passed = min(max(0, begin - first), held.size)
            held = np.concatenate([held[passed:], block])
            first += passed
        yield held[max(0, begin - first) : end - first].copy()
