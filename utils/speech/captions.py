"""Writes subtitles and chapters of a speech."""

import html
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TypeVar

from utils.core.batching import batched
from utils.core.errors import TextError
from utils.core.storage import write_atomically
from utils.dataset.clip import Cue, Span
from utils.media.encoding import Chapter
from utils.speech.types import Speech

T = TypeVar("T")
MAX_LINE = 42  # characters of a line that is read at a glance, the limit of broadcasters
MAX_LINES = 2


def captions(speech: Speech) -> list[Cue]:
    """Return the cues of a speech: one per sentence, or several where it is long."""
    return [cue for one in speech.utterances for cue in cues_of(one.sentence.text, one.start, one.start + one.seconds)]


def cues_of(text: str, start: float, end: float) -> Iterator[Cue]:
    """Split a text into cues of two short lines; each gets a share of the time by its length."""
    lines = textwrap.wrap(" ".join(text.split()), MAX_LINE, break_on_hyphens=False)
    groups = list(batched(lines, MAX_LINES))
    done = list(accumulate((sum(map(len, group)) for group in groups), initial=0))
    for group, (before, after) in zip(groups, pairwise(done), strict=True):
        share = (end - start) / done[-1]
        yield Cue(Span(start + before * share, start + after * share), "\n".join(group))


def chapters(speech: Speech) -> tuple[Chapter, ...]:
    """Return the chapters of a speech; each ends where the next one begins."""
    starts = [(one.sentence.chapter, one.start) for one in speech.utterances if one.sentence.chapter]
    edges = pairwise([*starts, ("", speech.seconds)])
    return tuple(Chapter(title, start, end) for (title, start), (_, end) in edges)


def srt(cues: Iterable[Cue]) -> str:
    """Format cues as SubRip."""
    return "\n".join(
        f"{number}\n{_timestamp(cue.span.start, ',')} --> {_timestamp(cue.span.end, ',')}\n"
        f"{cue.text.replace('-->', '->')}\n"
        for number, cue in enumerate(cues, 1)
    )


def vtt(cues: Iterable[Cue]) -> str:
    """Format cues as WebVTT."""
    blocks = (
        f"{_timestamp(cue.span.start, '.')} --> {_timestamp(cue.span.end, '.')}\n{html.escape(cue.text, quote=False)}\n"
        for cue in cues
    )
    return "\n".join(["WEBVTT\n", *blocks])


def audacity_labels(chapters: Iterable[Chapter]) -> str:
    """Format chapters as labels for Audacity."""
    return "".join(f"{one.start:.6f}\t{one.end:.6f}\t{' '.join(one.title.split())}\n" for one in chapters)


def chapter_json(chapters: Iterable[Chapter]) -> str:
    """Format chapters as JSON for podcast players."""
    entries = [{"startTime": round(one.start, 3), "endTime": round(one.end, 3), "title": one.title} for one in chapters]
    return json.dumps({"version": "1.2.0", "chapters": entries}, ensure_ascii=False, indent=2) + "\n"


def write_captions(path: Path | str, cues: Sequence[Cue]) -> None:
    """Write cues as .srt or .vtt."""
    _write(Path(path), cues, {".srt": srt, ".vtt": vtt}, "Subtitles")


def write_chapters(path: Path | str, chapters: Sequence[Chapter]) -> None:
    """Write chapters as .txt for Audacity or .json for podcast players."""
    _write(Path(path), chapters, {".txt": audacity_labels, ".json": chapter_json}, "Chapters")


def _write(path: Path, items: Sequence[T], formats: dict[str, Callable[[Iterable[T]], str]], what: str) -> None:
    if path.suffix.lower() not in formats:
        extension = path.suffix or "a file without an extension"
        raise TextError(f"{path}: {what} cannot be written as {extension}.", hint=f"Use {' or '.join(formats)}.")
    write_atomically(path, formats[path.suffix.lower()](items))


def _timestamp(seconds: float, point: str) -> str:
    minutes, milliseconds = divmod(round(seconds * 1000), 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{milliseconds // 1000:02d}{point}{milliseconds % 1000:03d}"
