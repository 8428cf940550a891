"""Speech that fits into the time of subtitles.

To fit, speech gets a little faster or slower and goes on into the silence that follows; it is never cut. Speech that
does not fit at the maximum speed delays the next cue and gets a note: two sentences at once could not be understood.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from utils.config import SpeechConfig
from utils.media.audio import Samples, faded
from utils.media.rates import OUTPUT_RATE
from utils.media.stretching import stretch
from utils.recognition.spans import Cue
from utils.speech.facts import Flag
from utils.speech.synthesizer import Synthesizer

MIN_SPEED = 0.8
MAX_SPEED = 1.35
GAP = 0.1  # seconds of silence before the next cue
MIN_CHANGE = 0.02  # slowing down by less is not worth it
NOTICEABLE = 0.05  # seconds; about a frame of a film


class DubbedCue(NamedTuple):
    """The audio of a cue in the whole."""

    start: float  # second at which it begins
    end: float  # second at which it ends
    speed: float  # factor by which it was sped up
    flag: Flag | None = None  # what a listener may notice


class Timeline(NamedTuple):
    """The speech of all cues, each at its time."""

    samples: Samples  # as long as the subtitles, or longer where the last words need it
    cues: tuple[DubbedCue, ...]  # one per subtitle

    @property
    def flags(self) -> tuple[tuple[int, Flag], ...]:
        """Return what a listener may notice, each with the number of its cue."""
        return tuple((number, cue.flag) for number, cue in enumerate(self.cues, 1) if cue.flag)


def dub(model: Synthesizer, cues: Sequence[Cue], config: SpeechConfig, seconds: float | None = None) -> Timeline:
    """Speak subtitles, each in its time; cues without letters stay silent.

    The cues are in order of time, as ``read_cues`` returns them. ``seconds``: duration of the whole; None: until the
    last cue ends.
    """
    return fit_to_cues(cues, list(model.speak_cues(cues, config)), seconds=seconds)


# Long because it is one pass over the cues: each may begin where the one before has ended.
def fit_to_cues(cues: Sequence[Cue], sounds: Sequence[Samples], *, seconds: float | None = None) -> Timeline:
    """Place the audio of each cue, which may be empty, at its time; ``seconds``: the minimum duration of the whole.

    The cues are in order of time, without overlap, as ``read_cues`` returns them.
    """
    placed = []
    dubbed = []
    free = 0  # first sample at which the next cue may begin
    for cue, sound in zip(cues, sounds, strict=True):
        begin = max(round(cue.span.start * OUTPUT_RATE), free)
        last = round(cue.span.end * OUTPUT_RATE)
        speed = _speed(sound.size, last - begin)
        fitted = stretch(sound, OUTPUT_RATE, speed)
        end = begin + fitted.size
        times = begin / OUTPUT_RATE, end / OUTPUT_RATE
        dubbed.append(DubbedCue(*times, speed, _flag(cue, *times, speed)))
        placed.append((begin, faded(fitted, OUTPUT_RATE)))
        free = end + round(GAP * OUTPUT_RATE) if end > last else end
    total = max([seconds or 0.0, *(cue.span.end for cue in cues)])
    return Timeline(_joined(placed, round(total * OUTPUT_RATE)), tuple(dubbed))


def _joined(placed: Sequence[tuple[int, Samples]], size: int) -> Samples:
    """Return one sound of sounds that do not overlap, of at least this size."""
    whole = np.zeros(max([size, *(begin + sound.size for begin, sound in placed)]), np.float32)
    for begin, sound in placed:
        whole[begin : begin + sound.size] = sound
    return whole


def _speed(size: int, available: int) -> float:
    if size > available:
        return min(size / available, MAX_SPEED) if available > 0 else MAX_SPEED
    return size / available if MIN_SPEED <= size / available < 1 - MIN_CHANGE else 1.0


def _flag(cue: Cue, start: float, end: float, speed: float) -> Flag | None:
    """Return what a listener may notice: nothing is spoken, or it starts or ends late."""
    if start == end:
        return Flag("nothing")
    late = start - cue.span.start
    over = end - cue.span.end
    if max(late, over) <= NOTICEABLE:
        return None
    return Flag("timing", max(0.0, over), share=speed, late=max(0.0, late))
