"""Cut a recording by its words: in pauses, wherever the subtitles or the transcript say that a text ends."""

import bisect
from collections.abc import Sequence
from itertools import pairwise

from utils.config import DatasetConfig
from utils.core.batching import grouped
from utils.dataset.cutting import Segment, clips_of
from utils.dataset.transcript import Group
from utils.recognition.aligner import Rows, SpokenWord, heard_in
from utils.recognition.phone_recogniser import FRAMES_PER_SECOND
from utils.recognition.spans import Cue, Span, near

WORD_END = 0.05  # seconds that the last phone of a word lasts after it is recognised
MISHEARD = -6.0  # score of a word whose place is not known
WORDLESS = 0.8  # seconds of speech between two words: something said is missing from the text
SPEECH = 3  # units that are heard in it; a breath may give one
BESIDE = 0.2  # seconds: a word is beside speech without text if something is heard so near to it
CLEAR_WORD = -2.8  # score of a word beside speech without text, per unit
OTHER_SPEECH = 4.0  # evidence of speech between such a word and the next one
MIDDLE = 0.02  # seconds of pause: what a second away from the middle of speech costs a cut


def cut_words(groups: Sequence[Group], speech: Sequence[Span], seconds: float, settings: DatasetConfig) -> list[Cue]:
    """Return clips in order; the words of a group, such as a subtitle, stay together where they fit in a clip.

    Each word goes to the speech segment where it is spoken. Speech missing from the text becomes a clip without text.
    """
    longest = settings.max_seconds - 2 * settings.padding_seconds
    pauses = _pauses(groups, seconds)
    wordless = [pause for pause in pauses if pause.seconds >= WORDLESS]
    speech = [part for span in speech for part in _apart(span, wordless)]
    speech = [part for span in speech for part in _divided(span, pauses, longest)]
    inside = _words_inside(speech, groups)
    segments = []
    for first, end in _stretches(speech, inside, longest):
        text = " ".join(word.text for part in inside[first:end] for word, _ in part)
        segments.append(Segment(Span.over(speech[first:end]), text, "text" if text else "no text"))
    return clips_of(segments, seconds, settings)


def _pauses(groups: Sequence[Group], seconds: float) -> list[Span]:
    """Return the times before, between and after the words."""
    placed = [Span(0.0, -WORD_END), *(word.span for word in _sure_words(groups)), Span(seconds, seconds)]
    return [Span(min(before.end + WORD_END, after.start), after.start) for before, after in pairwise(placed)]


def _words_inside(speech: Sequence[Span], groups: Sequence[Group]) -> list[list[tuple[SpokenWord, int]]]:
    """Return the words that are spoken in each segment, with the numbers of their groups."""
    inside: list[list[tuple[SpokenWord, int]]] = [[] for _ in speech]
    at = 0
    for number, group in enumerate(groups):
        for word in group:
            at = max(at, _nearest(speech, word.span))  # never before the word that was said before
            inside[at].append((word, number))
    return inside


def trim(words: Group, text: str, speech: Sequence[Span], seconds: float, settings: DatasetConfig) -> list[Cue]:
    """Return a short recording as one clip, without the speech segments at its ends that hold no word of its text."""
    places = [_nearest(speech, word.span) for word in words]
    first = min(places)
    end = max(places) + 1
    parts = [Segment(span, kind="no text") for span in speech]
    parts[first:end] = [Segment(Span.over(speech[first:end]), text)]
    return clips_of(parts, seconds, settings)


def unsure_words(rows: Rows, groups: Sequence[Group]) -> list[SpokenWord]:
    """Return the words that may be said elsewhere: unclear ones beside speech without text, and ones in its middle."""
    words = _sure_words(groups)
    unsure = []
    for before, word, after in zip([None, *words], words, [*words[1:], None], strict=False):
        left = Span(before.span.end if before else 0.0, word.span.start)
        right = Span(word.span.end, after.span.start if after else len(rows) / FRAMES_PER_SECOND)
        near_left = Span(max(left.start, left.end - BESIDE), left.end)
        near_right = Span(right.start, min(right.end, right.start + BESIDE))
        sides = ((left, near_left, right), (right, near_right, left))
        if any(_may_be_elsewhere(rows, word, *side) for side in sides):
            unsure.append(word)
    return unsure


def _may_be_elsewhere(rows: Rows, word: SpokenWord, outer: Span, near: Span, inner: Span) -> bool:
    """Return whether a word may belong to speech without text on one of its sides."""
    is_speech = outer.seconds >= WORDLESS and len(heard_in(rows, outer).units) >= SPEECH
    if not is_speech or not heard_in(rows, near).units:
        return False
    return word.score < CLEAR_WORD or heard_in(rows, inner).evidence > OTHER_SPEECH


def with_words(speech: Sequence[Span], groups: Sequence[Group], settings: DatasetConfig) -> list[Span]:
    """Add the words that the voice detection missed, such as in a telephone call, and move its cuts out of words."""
    spans = list(speech)
    pause = settings.min_pause_seconds
    for word in (word.span for word in _sure_words(groups)):
        beside = near(spans, word.start - pause, word.end + WORD_END + pause)
        if not any(span.start <= word.start and word.end <= span.end for span in spans[beside]):
            start = min([word.start, *(span.start for span in spans[beside])])
            spans[beside] = [Span(start, max([word.end + WORD_END, *(span.end for span in spans[beside])]))]
    return spans


def _apart(speech: Span, pauses: Sequence[Span]) -> list[Span]:
    """Split off long stretches of speech without words of the text, such as a sentence missing from it."""
    times = [speech.start]
    for pause in pauses:
        part = pause.within(speech.start, speech.end)
        times += [part.start, part.end] if part.seconds >= WORDLESS else []
    times.append(speech.end)
    return [Span(start, end) for start, end in pairwise(times) if end > start]


def _divided(speech: Span, pauses: Sequence[Span], longest: float) -> list[Span]:
    """Divide speech that is too long for a clip in its longest pauses between words, rather in its middle."""
    first = bisect.bisect_right(pauses, speech.start, key=lambda pause: pause.start)
    inside = pauses[first : bisect.bisect_left(pauses, speech.end, key=lambda pause: pause.end)]
    if speech.seconds <= longest or not inside:
        return [speech]
    cut = max(inside, key=lambda pause: pause.seconds - MIDDLE * abs(pause.start - speech.middle))
    parts = Span(speech.start, cut.start), Span(cut.end, speech.end)
    return [part for half in parts for part in _divided(half, inside, longest)]


def _stretches(
    speech: Sequence[Span], inside: Sequence[Sequence[tuple[SpokenWord, int]]], longest: float
) -> list[tuple[int, int]]:
    """Join the segments that share groups where all of them fit in a clip; where not, any pause may be cut."""

    def share_group(_: Sequence[int], number: int) -> bool:
        before, words = inside[number - 1 : number + 1]
        return bool(before and words) and before[-1][1] == words[0][1]

    stretches = []
    for chain in grouped(range(len(inside)), share_group):
        fits = speech[chain[-1]].end - speech[chain[0]].start <= longest
        stretches += [(chain[0], chain[-1] + 1)] if fits else [(at, at + 1) for at in chain]
    return stretches


def _sure_words(groups: Sequence[Group]) -> list[SpokenWord]:
    """Return the words whose place is known."""
    return [word for group in groups for word in group if word.score > MISHEARD and word.units]


def _nearest(speech: Sequence[Span], word: Span) -> int:
    """Return the segment in which a word is spoken."""
    middle = word.middle
    at = max(0, bisect.bisect_right(speech, middle, key=lambda span: span.start) - 1)
    if at + 1 < len(speech) and middle - speech[at].end > speech[at + 1].start - middle:
        return at + 1
    return at
