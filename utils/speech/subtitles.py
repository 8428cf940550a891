"""Subtitles and chapters of a speech."""

import html
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TypeVar

from utils.core.batching import batched
from utils.core.storage import write_atomically
from utils.media.encoding import Chapter
from utils.media.facts import AudioFileError
from utils.recognition.spans import Cue, Span
from utils.speech.types import Speech

T = TypeVar("T")
MAX_LINE = 42  # characters of a line that is read at a glance, the limit of broadcasters
MAX_LINES = 2


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
        raise AudioFileError(path, "extension", ", ".join(formats))
    write_atomically(path, formats[path.suffix.lower()](items))
