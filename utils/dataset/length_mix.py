"""Adds short and joined clips to a training list, so that a model learns texts of every length.

The new clips are made of clips in use and their neighbours in the same recording, which stay. Only training clips are
used, so nothing of the evaluation is trained on. All of it is one edit, which can be undone.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import cycle
from operator import attrgetter
from pathlib import Path

from utils.config import AUTO_SECONDS, MODEL_SECONDS, DatasetConfig
from utils.dataset.clip import Clip
from utils.dataset.editor import Edit, clip_of, editing, has_recording, part_of
from utils.dataset.errors import EditError
from utils.recognition import vad
from utils.recognition.spans import Span

MAX_PAUSE = 1.0  # seconds between clips that are joined: a speaker takes a breath
MIN_PAUSE = 0.25  # between two phrases that become clips of their own
SHORT = 2.0  # seconds of a short clip
SHORTEST = 0.5  # the model refuses shorter ones
TARGETS = (0.5, 0.75, 1.0)  # of the maximum, in turn, so that joined clips have different lengths
PADDING = 0.1  # seconds around a phrase
PHRASE = re.compile(r"[^.!?;:,።፧፣፤፥፦]+[.!?;:,።፧፣፤፥፦]*\s*")


def add_lengths(folder: Path, *, share: float, max_seconds: float = AUTO_SECONDS) -> Edit:
    """Add up to this share of the training clips as joined clips, and as many as short ones."""
    if not 0 < share <= 1 or not 1 <= max_seconds <= MODEL_SECONDS:
        raise EditError("lengths", limit=MODEL_SECONDS)
    with editing(folder, "lengths") as session:
        chosen = filter(attrgetter("audio"), session.store.clips(status="kept", split="train"))
        clips = _as_cut(sorted(chosen, key=lambda clip: (clip.recording, clip.span.start, -clip.span.end)))
        wanted = max(1, round(share * len(clips)))
        known = {clip.id for clip in session.store.clips()}
        made = [*_first(_joined(folder, clips, max_seconds), wanted, known)]
        made += _first(_short(folder, clips), wanted, known)
        session.put(made)
    return Edit("lengths", tuple(made))


def _as_cut(clips: Sequence[Clip]) -> list[Clip]:
    """Leave out what an earlier call has added: phrases inside other clips, and clips that hold others."""
    cut: list[Clip] = []
    for clip in clips:
        last = cut[-1] if cut else None
        is_inside = last and last.recording == clip.recording and clip.span.end <= last.span.end
        if is_inside and clip.span.seconds < SHORT:
            continue
        if is_inside:
            cut.pop()
        cut.append(clip)
    return cut


def _first(clips: Iterator[Clip], count: int, known: set[str]) -> Iterator[Clip]:
    """Yield up to this many clips that the dataset does not have yet."""
    for clip in clips:
        if count and clip.id not in known:
            count -= 1
            known.add(clip.id)
            yield clip
        if not count:
            return


def groups_to_join(clips: Sequence[Clip], max_seconds: float) -> list[list[Clip]]:
    """Group consecutive clips of a recording and speaker; no clip is in two groups. Clips are ordered by start."""
    groups: list[list[Clip]] = []
    targets = cycle(TARGETS)
    target = max_seconds * next(targets)
    for clip in clips:
        last = groups[-1] if groups else []
        fits = last and clip.span.end - last[0].span.start <= target
        if fits and _follows(last[-1], clip):
            last.append(clip)
            continue
        target = max_seconds * next(targets)
        groups.append([clip])
    return [group for group in groups if len(group) > 1]


def _follows(first: Clip, second: Clip) -> bool:
    is_same = (first.recording, first.speaker) == (second.recording, second.speaker)
    return is_same and 0 <= second.span.start - first.span.end <= MAX_PAUSE


def _joined(folder: Path, clips: Sequence[Clip], max_seconds: float) -> Iterator[Clip]:
    intact = {}
    for first, *others in groups_to_join(clips, max_seconds):
        if first.recording not in intact:  # the pause between two clips is only in the recording
            intact[first.recording] = has_recording(first)
        if intact[first.recording]:
            text = " ".join(clip.text for clip in (first, *others))
            yield clip_of(folder, first, Span(first.span.start, others[-1].span.end), text)


def _short(folder: Path, clips: Sequence[Clip]) -> Iterator[Clip]:
    """Cut out short phrases where the text and the speech divide into the same number of parts."""
    for clip in clips:
        for phrase, span in phrase_spans(folder, clip):
            if SHORTEST <= span.seconds < SHORT:
                yield part_of(folder, clip, span.start, span.end, phrase)


def phrase_spans(folder: Path, clip: Clip) -> list[tuple[str, Span]]:
    """Return the phrases of a clip and where they are spoken; nothing if pauses and punctuation disagree."""
    phrases = [phrase.strip() for phrase in PHRASE.findall(clip.text)]
    if len(phrases) < 2:
        return []
    spans = vad.speech_segments(folder / clip.audio, DatasetConfig(min_pause_seconds=MIN_PAUSE))
    if len(spans) != len(phrases):
        return []
    padded = [Span(span.start - PADDING, span.end + PADDING).within(0.0, clip.span.seconds) for span in spans]
    return list(zip(phrases, padded, strict=True))
