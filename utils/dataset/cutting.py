"""Choose where a recording is cut: only in pauses between speech segments, whatever the text.

Each pause is worth its length minus ``merge_pause_seconds``. The cuts are chosen together so that the sum is highest
and no clip is too long. Short pauses are cut only where the limit requires it, and then the longest of them; long
pauses always separate clips; and a clip that would be too short joins a near neighbour.
"""

import bisect
import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Literal, NamedTuple

from utils.config import DatasetConfig
from utils.core.batching import grouped
from utils.dataset.facts import CueDiffers, CueIssue
from utils.recognition.spans import Cue, Span, near

SHORT_PENALTY = 1.0  # seconds: a clip below the minimum joins over pauses up to this much longer than others
SLACK = 0.5  # seconds by which the times of subtitles are usually off
MIN_CUE = 0.05  # seconds; a shorter cue is left out
EPSILON = 1e-6  # seconds, less than a sample: rounding errors


class Segment(NamedTuple):
    """A stretch that is not cut: one or more speech segments with the text of their cues."""

    span: Span
    text: str = ""
    kind: Literal["text", "no speech", "no text"] = "text"


class _Padded(NamedTuple):
    """A stretch with its padding, and the pause before it."""

    start: float
    end: float
    pause: float


def cut_speech(speech: Sequence[Span], seconds: float, settings: DatasetConfig) -> list[Span]:
    """Join speech segments, which are in order without overlap, to padded clips; each segment is in exactly one."""
    padded = _pad(speech, seconds, settings)
    return [Span(padded[first].start, padded[end - 1].end) for first, end in _choose_clips(padded, settings)]


def cut_cues(
    cues: Sequence[Cue], speech: Sequence[Span], seconds: float, settings: DatasetConfig
) -> tuple[list[Cue], list[CueDiffers]]:
    """Snap subtitles to the pauses in the speech and join them to clips.

    The cues must be sorted, non-empty and inside the recording, as those of a ``Recording`` are.
    A cue takes the speech segments that it overlaps, whole. Cues that share a segment become one clip. Speech without
    a cue is returned without text, and a cue without speech with its own times, so that both can be excluded for that
    reason. The clips are in order without overlap; a warning names everything that differs from the subtitles.
    """
    claims = _claims(cues, speech)
    segments, warnings = _align(cues, claims, speech, settings)
    silent = (cue for cue, (first, end) in zip(cues, claims, strict=True) if first == end)
    skipped = [cue for cue in silent if not _insert_without_speech(cue, segments, settings)]
    warnings += [CueDiffers(cue.span.start, "no_speech", cue.text) for cue in skipped]
    return clips_of(segments, seconds, settings), warnings


def clips_of(segments: Sequence[Segment], seconds: float, settings: DatasetConfig) -> list[Cue]:
    """Join segments of the same kind to padded clips."""
    padded = _pad([segment.span for segment in segments], seconds, settings)
    clips = []
    for _, run in groupby(zip(segments, padded, strict=True), key=lambda pair: pair[0].kind):
        texts, stretches = zip(*((segment.text, stretch) for segment, stretch in run), strict=True)
        for first, end in _choose_clips(stretches, settings):
            text = " ".join(filter(None, texts[first:end]))
            clips.append(Cue(Span.over(stretches[first:end]), text))
    return clips


def _pad(spans: Sequence[Span], seconds: float, settings: DatasetConfig) -> list[_Padded]:
    """Pad each span up to the middle of the pause, or up to the edge of the recording."""
    middles = [0.0, *((before.end + after.start) / 2 for before, after in pairwise(spans)), seconds]
    pauses = [0.0, *(max(0.0, after.start - before.end) for before, after in pairwise(spans))]
    padded = []
    for span, pause, left, right in zip(spans, pauses, middles[:-1], middles[1:], strict=False):  # no span, one middle
        padding = min(settings.padding_seconds, max(0.0, settings.max_seconds - span.seconds) / 2)
        start = max(left, span.start - padding)
        end = max(span.start, min(right, span.end + padding))
        padded.append(_Padded(start, end, pause))
    return padded


# Long because it is one dynamic programme: worths are filled forwards, clips read backwards.
def _choose_clips(padded: Sequence[_Padded], settings: DatasetConfig) -> list[tuple[int, int]]:
    """Return the (first, end) of each clip, by dynamic programming over the prefixes."""
    worth = [0.0]
    begins = [0]
    for end in range(1, len(padded) + 1):
        worth.append(-math.inf)
        begins.append(end - 1)
        for first in range(end - 1, -1, -1):
            length = padded[end - 1].end - padded[first].start
            if length > settings.max_seconds + EPSILON and first < end - 1:
                break
            total = worth[first] + (padded[first].pause - settings.merge_pause_seconds if first else 0.0)
            total -= SHORT_PENALTY if length < settings.min_seconds - EPSILON else 0.0
            if total > worth[end]:
                worth[end], begins[end] = total, first
    clips = []
    end = len(padded)
    while end:
        clips.append((begins[end], end))
        end = begins[end]
    return clips[::-1]


def _align(
    cues: Sequence[Cue],
    claims: Sequence[tuple[int, int]],
    speech: Sequence[Span],
    settings: DatasetConfig,
) -> tuple[list[Segment], list[CueDiffers]]:
    """Assign cues to the speech that they claim: segments in order without overlap, with all of the speech."""
    segments = []
    warnings = []
    covered = 0
    for group, first, end in _groups(cues, claims):
        segments += _without_text(speech[covered:first])
        covered = first
        span = Span.over(speech[first:end])
        text = " ".join(cue.text for cue in group)
        if issue := _mismatch(group, span, settings):
            warnings.append(CueDiffers(group[0].span.start, issue, text))
        else:
            segments.append(Segment(span, text))
            covered = end
    return [*segments, *_without_text(speech[covered:])], warnings


def _without_text(speech: Sequence[Span]) -> list[Segment]:
    return [Segment(span, kind="no text") for span in speech]


def _groups(cues: Sequence[Cue], claims: Sequence[tuple[int, int]]) -> Iterator[tuple[list[Cue], int, int]]:
    """Yield the cues that share speech segments, with the (first, end) of the segments."""
    claiming = [(cue, first, end) for cue, (first, end) in zip(cues, claims, strict=True) if first < end]
    for group in grouped(claiming, lambda group, claimed: claimed[1] < max(end for *_, end in group)):
        sharing, firsts, ends = zip(*group, strict=True)
        yield list(sharing), min(firsts), max(ends)


def _claims(cues: Sequence[Cue], speech: Sequence[Span]) -> list[tuple[int, int]]:
    """Return the (first, end) of each cue's speech segments; a short unclaimed one goes to the nearest cue."""
    claims = [_claim(cue.span, speech) for cue in cues]
    claimed = {number for first, end in claims for number in range(first, end)}
    starts = [cue.span.start for cue in cues]
    for number, span in enumerate(speech):
        if number in claimed or span.seconds > SLACK or not cues:
            continue
        away, nearest = _nearest(span, cues, starts)
        first, end = claims[nearest]
        if away <= SLACK and first == end:
            claims[nearest] = number, number + 1
        elif away <= SLACK and number in {first - 1, end}:
            claims[nearest] = min(first, number), max(end, number + 1)
    return claims


def _nearest(span: Span, cues: Sequence[Cue], starts: Sequence[float]) -> tuple[float, int]:
    """Return how far the nearest cue is away, and its number."""
    near = bisect.bisect(starts, span.start)
    return min((-cues[at].span.overlap(span), at) for at in range(max(0, near - 2), min(len(cues), near + 1)))


def _claim(cue: Span, speech: Sequence[Span]) -> tuple[int, int]:
    """Return the segments that a cue overlaps by more than subtitles are usually off."""
    touched = near(speech, cue.start, cue.end)
    overlaps = ((at, cue.overlap(span)) for at, span in enumerate(speech[touched], touched.start))
    claimed = [at for at, overlap in overlaps if overlap >= min(SLACK, speech[at].seconds / 2, cue.seconds / 2)]
    return (claimed[0], claimed[-1] + 1) if claimed else (touched.start, touched.start)


def _mismatch(group: Sequence[Cue], span: Span, settings: DatasetConfig) -> CueIssue | None:
    """Return why a text does not fit this speech, which is then left without text."""
    early = min(cue.span.start for cue in group) - span.start
    late = span.end - max(cue.span.end for cue in group)
    if max(early, late) > 2 * SLACK:
        return "inside_speech"
    return "no_pause" if len(group) > 1 and span.seconds > settings.max_seconds else None


def _insert_without_speech(cue: Cue, segments: list[Segment], settings: DatasetConfig) -> bool:
    """Insert a cue without speech where its neighbours keep their padding; return whether there is space."""
    at = bisect.bisect(segments, cue.span.start, key=lambda segment: segment.span.start)
    away = 2 * settings.padding_seconds
    start = max(cue.span.start, segments[at - 1].span.end + away) if at else cue.span.start
    end = min(cue.span.end, segments[at].span.start - away) if at < len(segments) else cue.span.end
    if end - start < MIN_CUE:
        return False
    segments.insert(at, Segment(Span(start, end), cue.text, "no speech"))
    return True
