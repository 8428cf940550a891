"""Fits speech into the time of subtitles: a little faster or slower, on into the silence that follows, never cut.

Speech that does not fit at the maximum speed delays the next cue and gets a note: two sentences at once could not be
understood.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from utils.dataset.clip import Cue
from utils.media.audio import Samples, faded
from utils.media.rates import OUTPUT_RATE
from utils.media.stretching import stretch

MIN_SPEED, MAX_SPEED = 0.8, 1.35
GAP = 0.1  # seconds of silence before the next cue
MIN_CHANGE = 0.02  # slowing down by less is not worth it
NOTICEABLE = 0.05  # seconds; about a frame of a film


class DubbedCue(NamedTuple):
    """The audio of a cue in the whole."""

    start: float  # second at which it begins
    end: float  # second at which it ends
    speed: float  # factor by which it was sped up
    note: str = ""  # what a listener may notice; empty: nothing


class Timeline(NamedTuple):
    """The speech of all cues, each at its time."""

    samples: Samples  # as long as the subtitles, or longer where the last words need it
    cues: tuple[DubbedCue, ...]  # one per subtitle

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what a listener may notice, each with the number of its cue."""
        return tuple(f"Cue {number}: {cue.note}" for number, cue in enumerate(self.cues, 1) if cue.note)


def fit_to_cues(cues: Sequence[Cue], sounds: Sequence[Samples], *, seconds: float | None = None) -> Timeline:
    """Place the audio of each cue at its time.

    Args:
        cues: In order of time, without overlap, as ``read_cues`` returns them.
        sounds: Audio of each cue at 24 kHz; empty where nothing is spoken.
        seconds: Duration of the whole, if it is longer than the cues.
    """
    total = max([seconds or 0.0, *(cue.span.end for cue in cues)])
    quiet_until = [*(cue.span.start - GAP for cue in cues[1:]), total][: len(cues)]
    placed: list[tuple[int, Samples]] = []
    dubbed: list[DubbedCue] = []
    free = 0  # first sample at which the next cue may begin
    for cue, sound, until in zip(cues, sounds, quiet_until, strict=True):
        begin, last = max(round(cue.span.start * OUTPUT_RATE), free), round(cue.span.end * OUTPUT_RATE)
        speed = _speed(sound.size, last - begin)
        fitted = stretch(sound, OUTPUT_RATE, speed)
        end = begin + fitted.size
        start, stop = begin / OUTPUT_RATE, end / OUTPUT_RATE
        dubbed.append(DubbedCue(start, stop, speed, _note(cue, start, stop, speed, until)))
        placed.append((begin, faded(fitted, OUTPUT_RATE)))
        free = end + round(GAP * OUTPUT_RATE) if end > last else end
    return Timeline(_mixed(placed, round(total * OUTPUT_RATE)), tuple(dubbed))


def _speed(size: int, available: int) -> float:
    """Return the speed at which audio fits into its time, within the limits."""
    if size > available:
        return min(size / available, MAX_SPEED) if available > 0 else MAX_SPEED
    return size / available if MIN_SPEED <= size / available < 1 - MIN_CHANGE else 1.0


def _note(cue: Cue, start: float, end: float, speed: float, until: float) -> str:
    """Describe what a listener may notice; ``until`` is when the silence after the cue ends."""
    if start == end:
        return "Nothing is spoken."
    late, over = start - cue.span.start, end - cue.span.end
    notes = []
    if late > NOTICEABLE:
        notes.append(f"It starts {late:.2f} s late because the previous cue is still being spoken.")
    if over > NOTICEABLE:
        fast = f" at {speed:.2f} times the speed" if speed > 1 else ""
        where = "in the silence after it" if end <= until + NOTICEABLE else "and delays the next cue"
        notes.append(f"It ends {over:.2f} s late{fast}, {where}.")
    return " ".join(notes)


def _mixed(placed: Sequence[tuple[int, Samples]], size: int) -> Samples:
    """Place sounds that do not overlap in silence."""
    whole = np.zeros(max([size, *(begin + sound.size for begin, sound in placed)]), np.float32)
    for begin, sound in placed:
        whole[begin : begin + sound.size] = sound
    return whole
