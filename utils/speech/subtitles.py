"""Subtitles and chapters of a speech, and speech that fits into the time of subtitles.

To fit, speech gets a little faster or slower and goes on into the silence that follows; it is never cut. Speech that
does not fit at the maximum speed delays the next cue and gets a note: two sentences at once could not be understood.
"""

import html
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from utils.core.batching import batched
from utils.core.storage import write_atomically
from utils.media.audio import Samples, faded
from utils.media.encoding import Chapter
from utils.media.facts import AudioFileError, AudioProblem
from utils.media.rates import OUTPUT_RATE
from utils.media.stretching import stretch
from utils.recognition.spans import Cue, Span
from utils.speech.facts import Flag, FlagKind
from utils.speech.types import Speech

T = TypeVar("T")
MAX_LINE = 42  # characters of a line that is read at a glance, the limit of broadcasters
MAX_LINES = 2
MIN_SPEED, MAX_SPEED = 0.8, 1.35
GAP = 0.1  # seconds of silence before the next cue
MIN_CHANGE = 0.02  # slowing down by less is not worth it
NOTICEABLE = 0.05  # seconds; about a frame of a film


# --- from speech to subtitles ---


def captions(speech: Speech) -> list[Cue]:
    """Return the cues of a speech: one per sentence, or several where it is long."""
    spoken = [(each.sentence.text, each.start, each.start + each.seconds) for each in speech.utterances]
    return [cue for text, start, end in spoken for cue in _cues(text, start, end)]


def _cues(text: str, start: float, end: float) -> Iterator[Cue]:
    groups = list(batched(textwrap.wrap(" ".join(text.split()), MAX_LINE, break_on_hyphens=False), MAX_LINES))
    done = list(accumulate((sum(map(len, group)) for group in groups), initial=0))
    for group, (before, after) in zip(groups, pairwise(done), strict=True):
        share = (end - start) / done[-1]
        yield Cue(Span(start + before * share, start + after * share), "\n".join(group))


def chapters(speech: Speech) -> tuple[Chapter, ...]:
    """Return the chapters of a speech; each ends where the next one begins."""
    starts = [(each.sentence.chapter, each.start) for each in speech.utterances if each.sentence.chapter]
    edges = pairwise([*starts, ("", speech.seconds)])
    return tuple(Chapter(title, start, end) for (title, start), (_, end) in edges)


def srt(cues: Iterable[Cue]) -> str:
    return "\n".join(f"{n}\n{_times(cue, ',')}\n{cue.text.replace('-->', '->')}\n" for n, cue in enumerate(cues, 1))


def vtt(cues: Iterable[Cue]) -> str:
    return "\n".join(["WEBVTT\n", *(f"{_times(cue, '.')}\n{html.escape(cue.text, quote=False)}\n" for cue in cues)])


def _times(cue: Cue, point: str) -> str:
    return f"{_timestamp(cue.span.start, point)} --> {_timestamp(cue.span.end, point)}"


def _timestamp(seconds: float, point: str) -> str:
    minutes, milliseconds = divmod(round(seconds * 1000), 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{milliseconds // 1000:02d}{point}{milliseconds % 1000:03d}"


def audacity_labels(chapters: Iterable[Chapter]) -> str:
    return "".join(f"{each.start:.6f}\t{each.end:.6f}\t{' '.join(each.title.split())}\n" for each in chapters)


def chapter_json(chapters: Iterable[Chapter]) -> str:
    """Format chapters as JSON for podcast players."""
    entries = [
        {"startTime": round(each.start, 3), "endTime": round(each.end, 3), "title": each.title} for each in chapters
    ]
    return json.dumps({"version": "1.2.0", "chapters": entries}, ensure_ascii=False, indent=2) + "\n"


def write_captions(path: Path | str, cues: Sequence[Cue]) -> None:
    _write(Path(path), cues, {".srt": srt, ".vtt": vtt})


def write_chapters(path: Path | str, chapters: Sequence[Chapter]) -> None:
    """Write chapters as .txt for Audacity or .json for podcast players."""
    _write(Path(path), chapters, {".txt": audacity_labels, ".json": chapter_json})


def _write(path: Path, items: Sequence[T], formats: dict[str, Callable[[Iterable[T]], str]]) -> None:
    if path.suffix.lower() not in formats:
        raise AudioFileError(path, AudioProblem.EXTENSION, ", ".join(formats))
    write_atomically(path, formats[path.suffix.lower()](items))


# --- from subtitles to speech ---


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


def fit_to_cues(cues: Sequence[Cue], sounds: Sequence[Samples], *, seconds: float | None = None) -> Timeline:
    """Place the audio of each cue, which may be empty, at its time; ``seconds``: the minimum duration of the whole.

    The cues are in order of time, without overlap, as ``read_cues`` returns them.
    """
    total = max([seconds or 0.0, *(cue.span.end for cue in cues)])
    placed: list[tuple[int, Samples]] = []
    dubbed: list[DubbedCue] = []
    free = 0  # first sample at which the next cue may begin
    for cue, sound in zip(cues, sounds, strict=True):
        begin, last = max(round(cue.span.start * OUTPUT_RATE), free), round(cue.span.end * OUTPUT_RATE)
        speed = _speed(sound.size, last - begin)
        fitted = stretch(sound, OUTPUT_RATE, speed)
        end = begin + fitted.size
        start, stop = begin / OUTPUT_RATE, end / OUTPUT_RATE
        dubbed.append(DubbedCue(start, stop, speed, _flag(cue, start, stop, speed)))
        placed.append((begin, faded(fitted, OUTPUT_RATE)))
        free = end + round(GAP * OUTPUT_RATE) if end > last else end
    whole = np.zeros(max([round(total * OUTPUT_RATE), *(begin + sound.size for begin, sound in placed)]), np.float32)
    for begin, sound in placed:  # they do not overlap
        whole[begin : begin + sound.size] = sound
    return Timeline(whole, tuple(dubbed))


def _speed(size: int, available: int) -> float:
    if size > available:
        return min(size / available, MAX_SPEED) if available > 0 else MAX_SPEED
    return size / available if MIN_SPEED <= size / available < 1 - MIN_CHANGE else 1.0


def _flag(cue: Cue, start: float, end: float, speed: float) -> Flag | None:
    """Return what a listener may notice: nothing is spoken, or it starts or ends late."""
    if start == end:
        return Flag(FlagKind.NOTHING)
    late, over = start - cue.span.start, end - cue.span.end
    if max(late, over) <= NOTICEABLE:
        return None
    return Flag(FlagKind.TIMING, max(0.0, over), share=speed, late=max(0.0, late))
