"""Speech in the time that subtitles give: a little faster or slower, on into the silence that follows, never cut.

What does not fit although it is as fast as allowed pushes the next cue back, and that is told: two sentences at once
would not be understood.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from utils.core.errors import AudioError
from utils.dataset.clip import Cue
from utils.media.audio import Samples, faded
from utils.media.rates import OUTPUT_RATE
from utils.media.stretching import MAX_SPEED, MIN_SPEED, stretch

UNHEARD = 0.02  # slowing down by less than this is not worth it
UNNOTICED = 0.05  # seconds; about a frame of a film


@dataclass(frozen=True)
class FitLimits:
    """How far speech may be bent to fit its time.

    Attributes:
        slowest: Least speed, for a sound that is shorter than its cue; what would have to be slower keeps its own.
        fastest: Greatest speed.
        gap: Seconds of silence that stay before the next cue.
    """

    slowest: float = 0.8
    fastest: float = 1.35
    gap: float = 0.1

    def __post_init__(self) -> None:
        if not MIN_SPEED <= self.slowest <= 1 <= self.fastest <= MAX_SPEED or self.gap < 0:
            raise AudioError(
                f"Speech cannot be fitted between {self.slowest:g} and {self.fastest:g} of its speed.",
                hint=f"The limits lie between {MIN_SPEED:g} and 1, and between 1 and {MAX_SPEED:g}.",
            )


class PlacedCue(NamedTuple):
    """Where the sound of a cue came to lie.

    Attributes:
        start: Second at which it begins.
        end: Second at which it ends.
        speed: How much faster it was made; 1.0: not at all.
        note: What a listener may notice, as a sentence; empty: nothing.
    """

    start: float
    end: float
    speed: float
    note: str = ""


class Timeline(NamedTuple):
    """The speech of all cues, each at its time.

    Attributes:
        samples: As long as the subtitles; longer only where the last words need it, which is noted.
        placed: What became of each cue.
    """

    samples: Samples
    placed: tuple[PlacedCue, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what a listener may notice, each with the number of its cue."""
        return tuple(f"Cue {number}: {place.note}" for number, place in enumerate(self.placed, 1) if place.note)


def fit_to_cues(
    cues: Sequence[Cue],
    sounds: Sequence[Samples],
    *,
    seconds: float | None = None,
    limits: FitLimits | None = None,
) -> Timeline:
    """Lay the sound of each cue at its time.

    Args:
        cues: In order of time, without overlap, as ``read_cues`` returns them.
        sounds: What is said in each at 24 000 Hz, in the same order; empty where nothing is.
        seconds: How long the whole is, for example a film, if it is longer than the cues.
        limits: How far a sound may be bent.
    """
    if len(cues) != len(sounds):
        raise AudioError(f"There are {len(cues)} cues, and sounds for {len(sounds)}.")
    limits = limits or FitLimits()
    total = max([seconds or 0.0, *(cue.span.end for cue in cues)])
    quiet_until = [*(cue.span.start - limits.gap for cue in cues[1:]), total][: len(cues)]
    laid: list[tuple[int, Samples]] = []
    placed: list[PlacedCue] = []
    free = 0  # first sample at which the next cue may begin
    for cue, sound, until in zip(cues, sounds, quiet_until, strict=True):
        begin, last = max(round(cue.span.start * OUTPUT_RATE), free), round(cue.span.end * OUTPUT_RATE)
        speed = _speed(sound.size, last - begin, limits)
        bent = stretch(sound, OUTPUT_RATE, speed)
        end = begin + bent.size
        start, stop = begin / OUTPUT_RATE, end / OUTPUT_RATE
        placed.append(PlacedCue(start, stop, speed, _note(cue, start, stop, speed, until)))
        laid.append((begin, faded(bent, OUTPUT_RATE)))
        free = end + round(limits.gap * OUTPUT_RATE) if end > last else end
    return Timeline(_mixed(laid, round(total * OUTPUT_RATE)), tuple(placed))


def _speed(size: int, time: int, limits: FitLimits) -> float:
    """Return how fast a sound has to be for its time, as far as it may."""
    if size > time:
        return min(size / time, limits.fastest) if time > 0 else limits.fastest
    return size / time if limits.slowest <= size / time < 1 - UNHEARD else 1.0


def _note(cue: Cue, start: float, end: float, speed: float, until: float) -> str:
    """Say what a listener may notice of a cue; ``until`` is when the silence after it ends."""
    if start == end:
        return "Nothing is said."
    late, over = start - cue.span.start, end - cue.span.end
    said = []
    if late > UNNOTICED:
        said.append(f"It begins {late:.2f} s late, when the one before it has ended.")
    if over > UNNOTICED:
        where = (
            "into the silence after it" if end <= until + UNNOTICED else "and leaves too little time for what follows"
        )
        fast = f", though spoken {speed:.2f} times as fast," if speed > 1 else ""
        said.append(f"It goes on{fast} for {over:.2f} s beyond its time {where}.")
    return " ".join(said)


def _mixed(laid: Sequence[tuple[int, Samples]], size: int) -> Samples:
    """Lay sounds that do not overlap into silence."""
    whole = np.zeros(max([size, *(begin + sound.size for begin, sound in laid)]), np.float32)
    for begin, sound in laid:
        whole[begin : begin + sound.size] = sound
    return whole
