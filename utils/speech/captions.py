"""What was said when: subtitles and chapters of spoken text."""

import html
import json
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from utils.core.batching import batched
from utils.core.errors import TextError
from utils.core.storage import write_atomically
from utils.dataset.clip import Cue, Span
from utils.media.encoding import Chapter

if TYPE_CHECKING:
    from utils.speech.types import Speech

T = TypeVar("T")
LETTERS = 42  # of a line that is read at a glance, as broadcasters count
LINES = 2


def captions(speech: "Speech") -> list[Cue]:
    """Return the cues of a speech: one a piece, or several of two lines where it is long.

    A piece that takes several cues gives each a share of its time by its letters.
    """
    return [
        cue for piece in speech.pieces for cue in _cues(piece.reading.written, piece.start, piece.start + piece.seconds)
    ]


def srt(cues: Iterable[Cue]) -> str:
    """Write cues as SubRip."""
    return "\n".join(
        f"{number}\n{_clock(cue.span.start, ',')} --> {_clock(cue.span.end, ',')}\n{cue.text.replace('-->', '->')}\n"
        for number, cue in enumerate(cues, 1)
    )


def vtt(cues: Iterable[Cue]) -> str:
    """Write cues as WebVTT."""
    blocks = (
        f"{_clock(cue.span.start, '.')} --> {_clock(cue.span.end, '.')}\n{html.escape(cue.text, quote=False)}\n"
        for cue in cues
    )
    return "\n".join(["WEBVTT\n", *blocks])


def chapters(speech: "Speech") -> tuple[Chapter, ...]:
    """Return the chapters of a speech; each ends where the next one begins."""
    begun = [(piece.chapter, piece.start) for piece in speech.pieces if piece.chapter]
    edges = pairwise([*begun, ("", speech.seconds)])
    return tuple(Chapter(title, start, end) for (title, start), (_, end) in edges)


def labels(listed: Iterable[Chapter]) -> str:
    """Write chapters as Audacity reads labels."""
    return "".join(f"{one.start:.6f}\t{one.end:.6f}\t{' '.join(one.title.split())}\n" for one in listed)


def chapter_json(listed: Iterable[Chapter]) -> str:
    """Write chapters as players of podcasts read them."""
    shown = [{"startTime": round(one.start, 3), "endTime": round(one.end, 3), "title": one.title} for one in listed]
    return json.dumps({"version": "1.2.0", "chapters": shown}, ensure_ascii=False, indent=2) + "\n"


def write_captions(path: Path | str, cues: Sequence[Cue]) -> None:
    """Write cues as the ending of a name says: .srt or .vtt."""
    _write(Path(path), cues, {".srt": srt, ".vtt": vtt}, "Subtitles")


def write_chapters(path: Path | str, listed: Sequence[Chapter]) -> None:
    """Write chapters as the ending of a name says: .txt for Audacity, .json for players of podcasts."""
    _write(Path(path), listed, {".txt": labels, ".json": chapter_json}, "Chapters")


def _write(path: Path, things: Sequence[T], forms: dict[str, Callable[[Iterable[T]], str]], what: str) -> None:
    if path.suffix.lower() not in forms:
        raise TextError(
            f"{path}: {what} are not written as {path.suffix or 'a file without ending'}.",
            hint=f"Use {' or '.join(forms)}.",
        )
    write_atomically(path, forms[path.suffix.lower()](things))


def _cues(text: str, start: float, end: float) -> Iterator[Cue]:
    """Cut a text into cues of a few short lines, and its time in proportion."""
    lines = textwrap.wrap(" ".join(text.split()), LETTERS, break_on_hyphens=False)
    shown = list(batched(lines, LINES))
    done = list(accumulate((sum(map(len, some)) for some in shown), initial=0))
    for some, (before, after) in zip(shown, pairwise(done), strict=True):
        share = (end - start) / done[-1]
        yield Cue(Span(start + before * share, start + after * share), "\n".join(some))


def _clock(seconds: float, point: str) -> str:
    minutes, thousandths = divmod(round(seconds * 1000), 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{thousandths // 1000:02d}{point}{thousandths % 1000:03d}"
