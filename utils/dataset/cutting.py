"""Where a recording is cut: only in the pauses between spans of speech, and never by what the text looks like.

Every pause has a worth: its length less ``merge_pause_seconds``. The cuts are chosen together so that their worth is
highest and no clip is longer than allowed. So short pauses are cut only where the limit asks for it, and then the
deepest of them; long pauses always part; and a clip that would be too short joins its neighbour where that is near.
"""

import bisect
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from utils.config import DatasetConfig
from utils.dataset.clip import Cue, Span

SHORT_MALUS = 1.0  # seconds: a clip below the shortest joins over pauses up to this much longer than others
SLACK = 0.5  # seconds by which the times of a subtitle are commonly off
SHORTEST = 0.05  # seconds: less of a cue is not worth a row
EPSILON = 1e-6  # seconds, below a sample: rounding is no excess

Kind = Literal["text", "no speech", "no text"]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch that is not cut: one or more spans of speech, with the text of their cues."""

    span: Span
    text: str = ""
    kind: Kind = "text"


def cut(speech: Sequence[Span], seconds: float, settings: DatasetConfig) -> list[Span]:
    """Join spans of speech to clips with padding; all of the speech is in them, once.

    Args:
        speech: Spans in order, without overlaps.
        seconds: Length of the recording.
        settings: Limits and padding.
    """
    padded = _padded(speech, seconds, settings)
    return [_spanned(padded, first, end) for first, end in _best(padded, settings)]


def cut_cues(
    cues: Sequence[Cue], speech: Sequence[Span], seconds: float, settings: DatasetConfig
) -> tuple[list[Cue], list[str]]:
    """Snap subtitles to the pauses of the speech and join them to clips.

    A cue takes the spans of speech that it overlaps, whole. Cues that share a span cannot be parted and become one
    clip. Speech without a cue comes back with no text, and a cue without speech with its own times, so that both can
    be set aside for that reason.

    Args:
        cues: Subtitles in any order.
        speech: Spans in order, without overlaps.
        seconds: Length of the recording.
        settings: Limits and padding.

    Returns:
        Disjoint clips in order, and a sentence for everything that is not as the subtitles say.
    """
    usable, warnings = _usable(cues, seconds)
    pieces = _snapped(usable, speech, settings, warnings)
    padded = _padded([piece.span for piece in pieces], seconds, settings)
    clips: list[Cue] = []
    for _, stretch in groupby(range(len(pieces)), key=lambda number: pieces[number].kind):
        numbers = list(stretch)
        for first, end in _best([padded[number] for number in numbers], settings):
            joined = numbers[first:end]
            text = " ".join(pieces[number].text for number in joined if pieces[number].text)
            clips.append(Cue(_spanned(padded, joined[0], joined[-1] + 1), text))
    return clips, warnings


@dataclass(frozen=True, slots=True)
class _Padded:
    """A stretch with the padding that its neighbours leave it, and the pause in front of it."""

    start: float
    end: float
    pause: float


def _padded(spans: Sequence[Span], seconds: float, settings: DatasetConfig) -> list[_Padded]:
    """Give each span padding up to the middle of the pause, or up to the edge of the recording."""
    pads = [min(settings.padding_seconds, max(0.0, settings.max_seconds - span.seconds) / 2) for span in spans]
    ends = [span.end for span in spans]
    starts = [span.start for span in spans]
    middles = [0.0, *((end + start) / 2 for end, start in zip(ends, starts[1:], strict=False)), seconds]
    return [
        _Padded(
            max(middles[number], span.start - pads[number]),
            max(span.start, min(middles[number + 1], span.end + pads[number])),
            max(0.0, span.start - ends[number - 1]) if number else 0.0,
        )
        for number, span in enumerate(spans)
    ]


def _spanned(padded: Sequence[_Padded], first: int, end: int) -> Span:
    return Span(padded[first].start, padded[end - 1].end)


def _best(padded: Sequence[_Padded], settings: DatasetConfig) -> list[tuple[int, int]]:
    """Choose the (first, end) of each clip so that the sum of their worth is highest; a prefix at a time."""
    worth, begins = [0.0], [0]
    for end in range(1, len(padded) + 1):
        worth.append(-math.inf)
        begins.append(end - 1)
        for first in range(end - 1, -1, -1):
            length = padded[end - 1].end - padded[first].start
            if length > settings.max_seconds + EPSILON and first < end - 1:
                break
            found = worth[first] + (padded[first].pause - settings.merge_pause_seconds if first else 0.0)
            found -= SHORT_MALUS if length < settings.min_seconds - EPSILON else 0.0
            if found > worth[end]:
                worth[end], begins[end] = found, first
    clips = []
    end = len(padded)
    while end:
        clips.append((begins[end], end))
        end = begins[end]
    return clips[::-1]


def _usable(cues: Sequence[Cue], seconds: float) -> tuple[list[Cue], list[str]]:
    """Sort the cues and name those that hold nothing."""
    usable, warnings = [], []
    for cue in sorted(cues, key=lambda cue: (cue.span.start, cue.span.end)):
        span = Span(max(0.0, cue.span.start), min(seconds, cue.span.end))
        if not cue.text.strip():
            warnings.append(f"The subtitle at {clock(cue.span.start)} is empty; it was left out.")
        elif cue.span.start >= seconds:
            warnings.append(
                f"The subtitle at {clock(cue.span.start)} lies behind the end of the recording"
                f" ({clock(seconds)}); it was left out: {cue.text}"
            )
        elif span.seconds < SHORTEST:
            warnings.append(
                f"The subtitle at {clock(cue.span.start)} ends where it begins; it was left out: {cue.text}"
            )
        else:
            usable.append(Cue(span, cue.text.strip()))
    return usable, warnings


def _snapped(cues: Sequence[Cue], speech: Sequence[Span], settings: DatasetConfig, warnings: list[str]) -> list[_Piece]:
    """Lay cues and speech side by side: disjoint pieces in order, with all of the speech and all of the text."""
    pieces: list[_Piece] = []
    covered = 0
    claims = _claims(cues, speech)
    for group, first, end in _groups(cues, claims):
        pieces += _untold(speech[covered:first])
        covered = end
        span = Span(speech[first].start, speech[end - 1].end)
        fault = _fault(group, span, settings)
        if fault:
            warnings.append(f"The subtitle at {clock(group[0].span.start)} {fault}: {_text(group)}")
        pieces += _untold(speech[first:end]) if fault else [_Piece(span, _text(group))]
    pieces += _untold(speech[covered:])
    for cue, (first, end) in zip(cues, claims, strict=True):
        if first == end:
            _lay_over_silence(cue, pieces, settings, warnings)
    return pieces


def _untold(speech: Sequence[Span]) -> list[_Piece]:
    return [_Piece(span, kind="no text") for span in speech]


def _text(cues: Sequence[Cue]) -> str:
    return " ".join(cue.text for cue in cues)


def _groups(cues: Sequence[Cue], claims: Sequence[tuple[int, int]]) -> Iterator[tuple[list[Cue], int, int]]:
    """Yield cues that share speech together, with the range of spans that is theirs."""
    group: list[Cue] = []
    first = end = 0
    for cue, (begin, stop) in zip(cues, claims, strict=True):
        if begin == stop:
            continue
        if group and begin >= end:
            yield group, first, end
            group = []
        first, end = (min(first, begin), max(end, stop)) if group else (begin, stop)
        group.append(cue)
    if group:
        yield group, first, end


def _claims(cues: Sequence[Cue], speech: Sequence[Span]) -> list[tuple[int, int]]:
    """Return for each cue the (first, end) of the spans of speech that it tells of."""
    claims = [_claim(cue.span, speech) for cue in cues]
    claimed = {number for first, end in claims for number in range(first, end)}
    starts = [cue.span.start for cue in cues]
    for number, span in enumerate(speech):
        if number in claimed or span.seconds > SLACK or not cues:
            continue
        near = bisect.bisect(starts, span.start)
        nearest = min(range(max(0, near - 2), min(len(cues), near + 1)), key=lambda at: _apart(cues[at].span, span))
        first, end = claims[nearest]
        if _apart(cues[nearest].span, span) <= SLACK and (first == end or number in {first - 1, end}):
            claims[nearest] = (number, number + 1) if first == end else (min(first, number), max(end, number + 1))
    return claims


def _claim(cue: Span, speech: Sequence[Span]) -> tuple[int, int]:
    """Find the spans that a cue overlaps by more than subtitles are commonly off."""
    first = bisect.bisect_right(speech, cue.start, key=lambda span: span.end)
    end = bisect.bisect_left(speech, cue.end, key=lambda span: span.start)
    claimed = [
        number
        for number in range(first, end)
        if -_apart(cue, speech[number]) >= min(SLACK, speech[number].seconds / 2, cue.seconds / 2)
    ]
    return (claimed[0], claimed[-1] + 1) if claimed else (first, first)


def _apart(one: Span, other: Span) -> float:
    """Return the seconds between two spans, negative where they overlap."""
    return max(one.start, other.start) - min(one.end, other.end)


def _fault(group: Sequence[Cue], span: Span, settings: DatasetConfig) -> str:
    """Say why a text cannot stay with this speech, or nothing."""
    early = min(cue.span.start for cue in group) - span.start
    late = span.end - max(cue.span.end for cue in group)
    if max(early, late) > 2 * SLACK:
        return "stops in the middle of speech without a pause; that speech is left without its text"
    if len(group) > 1 and span.seconds > settings.max_seconds:
        return f"and the next {len(group) - 1} have no pause between them; that speech is left without its text"
    return ""


def _lay_over_silence(cue: Cue, pieces: list[_Piece], settings: DatasetConfig, warnings: list[str]) -> None:
    """Insert a cue without speech where it leaves its neighbours their padding, or say that there is no room."""
    at = bisect.bisect(pieces, cue.span.start, key=lambda piece: piece.span.start)
    away = 2 * settings.padding_seconds
    start = max(cue.span.start, pieces[at - 1].span.end + away) if at else cue.span.start
    end = min(cue.span.end, pieces[at].span.start - away) if at < len(pieces) else cue.span.end
    if end - start >= SHORTEST:
        pieces.insert(at, _Piece(Span(start, end), cue.text, "no speech"))
    else:
        warnings.append(
            f"The subtitle at {clock(cue.span.start)} has no speech of its own; it was left out: {cue.text}"
        )


def clock(seconds: float) -> str:
    """Write a time as people read it: 1:02:03.4."""
    minutes, rest = divmod(round(max(0.0, seconds), 1), 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours}:{minutes:02}:{rest:04.1f}"
