"""Cut a recording by its words: in pauses, wherever the subtitles or the transcript say that a text ends."""

import bisect
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from utils.config import DatasetConfig
from utils.dataset.alignment.aligner import SpokenWord
from utils.dataset.clip import Cue, Span
from utils.dataset.cutting import Segment, clips_of

WORD_END = 0.05  # seconds that the last phone of a word lasts after it is recognised
MISHEARD = -6.0  # score of a word whose place is not known
TOUCHING = 0.05  # seconds: a shorter pause is a cut within speech


def cut_words(
    groups: Sequence[Sequence[SpokenWord]], speech: Sequence[Span], seconds: float, settings: DatasetConfig
) -> list[Cue]:
    """Return clips in order; the words of a group, such as a subtitle, stay together where they fit in a clip.

    Every speech segment belongs to one clip, and each word goes to the segment where it is spoken.
    """
    words = [(word, number) for number, group in enumerate(groups) for word in group]
    speech = _with_words(speech, [word for word, _ in words], settings)
    speech = _between_words(speech, [word.span for word, _ in words])
    inside: list[list[tuple[SpokenWord, int]]] = [[] for _ in speech]
    at = 0
    for word, number in words:
        at = max(at, _nearest(speech, word.span))  # never before the word that was said before
        inside[at].append((word, number))
    segments = []
    for first, end in _stretches(speech, inside, settings):
        text = " ".join(word.text for part in inside[first:end] for word, _ in part)
        segments.append(Segment(Span(speech[first].start, speech[end - 1].end), text, "text" if text else "no text"))
    return clips_of(segments, seconds, settings)


def trim(
    words: Sequence[SpokenWord], text: str, speech: Sequence[Span], seconds: float, settings: DatasetConfig
) -> list[Cue]:
    """Return a short recording as one clip, without the speech segments at its ends that hold no word of its text."""
    speech = _with_words(speech, words, settings)
    places = [_nearest(speech, word.span) for word in words]
    first, end = min(places), max(places) + 1
    parts = [Segment(span, kind="no text") for span in speech]
    parts[first:end] = [Segment(Span(speech[first].start, speech[end - 1].end), text)]
    return clips_of(parts, seconds, settings)


def _stretches(
    speech: Sequence[Span], inside: Sequence[Sequence[tuple[SpokenWord, int]]], settings: DatasetConfig
) -> list[tuple[int, int]]:
    """Join the segments that share groups where all of them fit in a clip; where not, any pause may be cut."""
    longest = settings.max_seconds - 2 * settings.padding_seconds
    chains: list[tuple[int, int]] = []
    for number, words in enumerate(inside):
        if chains and words and inside[number - 1] and inside[number - 1][-1][1] == words[0][1]:
            chains[-1] = chains[-1][0], number + 1
        else:
            chains.append((number, number + 1))
    fits = {first: speech[end - 1].end - speech[first].start <= longest for first, end in chains}
    return [
        stretch
        for first, end in chains
        for stretch in ([(first, end)] if fits[first] else [(at, at + 1) for at in range(first, end)])
    ]


def _with_words(speech: Sequence[Span], words: Sequence[SpokenWord], settings: DatasetConfig) -> list[Span]:
    """Add the words to the speech that the voice detection missed, such as in a telephone call."""
    spans = list(speech)
    longest = settings.max_seconds - 2 * settings.padding_seconds
    for word in (word.span for word in words if word.score > MISHEARD and word.units):
        at = _nearest(spans, word)
        near, left = spans[at], spans[at - 1].end if at else 0.0
        if near.start <= word.start and word.end <= near.end:
            continue
        right = spans[at + 1].start if at + 1 < len(spans) else max(near.end, word.end + WORD_END)
        start, end = max(left, word.start), min(right, word.end + WORD_END)
        wider = Span(min(near.start, start), max(near.end, end))
        touches = start <= near.end + settings.min_pause_seconds and near.start <= end + settings.min_pause_seconds
        if touches and wider.seconds <= longest:
            spans[at] = wider
        elif start >= near.end:
            spans.insert(at + 1, Span(start, end))
        elif end <= near.start:
            spans.insert(at, Span(start, end))
    return spans


def _between_words(speech: Sequence[Span], words: Sequence[Span]) -> list[Span]:
    """Move cuts within speech, where two segments touch, out of the words."""
    speech = list(speech)
    ends = [word.end for word in words]
    for number, (before, after) in enumerate(pairwise(list(speech))):
        if after.start - before.end > TOUCHING:
            continue
        at = bisect.bisect_right(ends, before.end)
        if at == len(words) or words[at].start >= before.end:
            continue
        edges = [(words[at - 1].end + words[at].start) / 2] if at else []
        edges += [(words[at].end + words[at + 1].start) / 2] if at + 1 < len(words) else []
        inner = [edge for edge in edges if speech[number].start < edge < after.end]
        if inner:
            cut = min(inner, key=lambda edge: abs(edge - before.end))
            speech[number] = replace(speech[number], end=cut)
            speech[number + 1] = replace(speech[number + 1], start=cut)
    return speech


def _nearest(speech: Sequence[Span], word: Span) -> int:
    """Return the segment in which a word is spoken."""
    middle = (word.start + word.end) / 2
    at = max(0, bisect.bisect_right(speech, middle, key=lambda span: span.start) - 1)
    if at + 1 < len(speech) and middle - speech[at].end > speech[at + 1].start - middle:
        return at + 1
    return at
