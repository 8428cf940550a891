"""Find the words of a text in a recording: subtitle by subtitle, or a whole transcript without times.

A long transcript is first tied to the sound by anchors: runs of units that are heard once and written once. Between
two anchors a forced alignment finds the words. What the text has and the sound lacks, or the other way round, stays
between its anchors, however long it is. A long sentence that is not where the text has it is then looked for in all
speech that has no words yet, so that parts of a transcript may come in another order.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, pairwise

import numpy as np

from utils.core.facts import ShouldStop, never_stop, raise_if_stopped
from utils.dataset.facts import UnsaidSentence
from utils.media.arrays import Float64Array, Int64Array
from utils.recognition.aligner import WORST, Rows, SpokenWord, align, heard_units
from utils.recognition.phone_recogniser import FRAMES_PER_SECOND
from utils.recognition.spans import Cue, Span
from utils.recognition.thresholds import LARGEST_WORD_SCORE, MIN_UNITS
from utils.recognition.units import Units, Word, units_in

CUE_SLACK = 0.75  # seconds by which a subtitle may begin too late or end too early
RUN = 6  # units of an anchor
SUPPORT_SECONDS = 30.0  # within which another anchor must agree
UNITS_PER_SECOND = (3.0, 30.0)  # of anything that is said
WINDOW_SECONDS = 12.0  # between two anchors that are used
LARGEST = 60_000_000  # frames times units of one forced alignment: 120 MB
SENTENCE_UNITS = 12  # a shorter sentence is judged as a word is

ALONE = 24  # units of a sentence that is recognised wherever it is said
SHORTEST_STRETCH = 0.3  # seconds without words in which a sentence is looked for
LARGEST_SEARCH = 100_000_000  # frames times sentences that are looked for elsewhere: two minutes

Group = list[SpokenWord]  # the words of a subtitle or a sentence


def words_of_cues(rows: Rows, cues: Sequence[Cue], units: Units, limit: float) -> list[Group]:
    """Find each subtitle near its times; where it is not spoken, its words are spread over them."""
    groups = []
    last = 0.0
    for cue in cues:
        span = Span(max(last, cue.span.start - CUE_SLACK), cue.span.end + CUE_SLACK)
        words = units.words(cue.text)
        part, start = _part(rows, span)
        aligned = align(part, words, start)
        is_spoken = aligned is not None and (
            _size(aligned.words) < SENTENCE_UNITS or _mean_score(aligned.words) >= limit
        )
        group = _with_silent(words, aligned.words) if aligned and is_spoken else spread(words, cue.span)
        groups.append(group)
        if group:
            last = max(last, group[-1].span.end - CUE_SLACK / 2)
    return groups


def words_of_transcript(
    rows: Rows, sentences: Sequence[str], units: Units, limit: float, should_stop: ShouldStop = never_stop
) -> tuple[list[Group], list[UnsaidSentence]]:
    """Find the sentences of a transcript; return their words in the order of the sound, and the sentences not said."""
    written = [units.words(sentence) for sentence in sentences]
    found: dict[int, Group] = {}
    for (first, end), span in _windows(rows, written):
        raise_if_stopped(should_stop)
        found |= _align_window(rows, span, dict(enumerate(written[first:end], first)), limit)
    _find_elsewhere(rows, written, found, limit, should_stop)
    missing = []
    last = 0.0
    for number, sentence in enumerate(sentences):
        if number in found:
            last = found[number][-1].span.end
        elif _size(written[number]):
            missing.append(UnsaidSentence(last, sentence))
    return sorted(found.values(), key=lambda group: group[0].span.start), missing


# Long because all sentences share one budget of sound, and each is left out of what is searched for the next.
def _find_elsewhere(
    rows: Rows, written: Sequence[Sequence[Word]], found: dict[int, Group], limit: float, should_stop: ShouldStop
) -> None:
    """Find sentences in speech that has no words yet: long ones wherever it is, such as a chapter in another order."""
    lost = [number for number, words in enumerate(written) if number not in found and _size(words) >= MIN_UNITS]
    anywhere = len(lost) * len(rows) <= LARGEST_SEARCH
    left = LARGEST_SEARCH
    whole = Span(0.0, len(rows) / FRAMES_PER_SECOND)
    for number in sorted(lost, key=lambda number: -_size(written[number])):
        raise_if_stopped(should_stop)
        words = written[number]
        tried = []
        within = whole if anywhere and _size(words) >= ALONE else _between_neighbours(found, number, whole)
        for part, start in _searched(rows, words, _without_words(found, within)):
            left -= len(part)
            if left < 0:
                break
            if aligned := align(part, words, start, {0}):
                tried.append(_with_silent(words, aligned.words))
        best = max(tried, key=_mean_score, default=None)
        if best and _margin(best, limit) >= 0:
            found[number] = best


def _searched(rows: Rows, words: Sequence[Word], spans: Iterable[Span]) -> Iterator[tuple[Rows, float]]:
    """Yield the rows of the spans that are not too long for a sentence, with their starts."""
    longest = math.inf if _size(words) >= ALONE else WINDOW_SECONDS
    for span in spans:
        part, start = _part(rows, span)
        if span.seconds <= longest and _is_small(part, words):
            yield part, start


def _between_neighbours(found: Mapping[int, Group], number: int, whole: Span) -> Span:
    """Return the time between the sentences before and after one in the text."""
    before = max((other for other in found if other < number), default=None)
    after = min((other for other in found if other > number), default=None)
    start = whole.start if before is None else found[before][-1].span.end
    return Span(start, whole.end if after is None else found[after][0].span.start)


def _without_words(found: Mapping[int, Group], within: Span) -> list[Span]:
    """Return where no sentence was found."""
    groups = sorted(found.values(), key=lambda group: group[0].span.start)
    starts = accumulate((group[-1].span.end for group in groups), max, initial=within.start)
    ends = (min(group[0].span.start, within.end) for group in groups)
    gaps = map(Span, starts, [*ends, within.end])
    return [gap for gap in gaps if gap.seconds > SHORTEST_STRETCH]


def spread(words: Sequence[Word], span: Span) -> Group:
    """Spread words evenly over a span."""
    step = span.seconds / max(1, len(words))
    return [
        SpokenWord(
            word.text, Span(span.start + number * step, span.start + (number + 1) * step), -20.0, len(word.units)
        )
        for number, word in enumerate(words)
    ]


def _align_window(rows: Rows, span: Span, sentences: Mapping[int, Sequence[Word]], limit: float) -> dict[int, Group]:
    """Align sentences in a window; leave out those that are not spoken there, the worst first."""
    part, start = _part(rows, span)
    left = {number: words for number, words in sentences.items() if _size(words)}
    while left:
        groups = _align_sentences(part, start, left)
        if not groups:  # more text than sound: what is said is near the anchors on both sides
            del left[[*left][len(left) // 2]]
            continue
        margins = {number: _margin(group, limit) for number, group in groups.items()}
        worst = min(margins, key=margins.__getitem__)
        if margins[worst] >= 0:
            return groups
        del left[worst]
    return {}


def _align_sentences(part: Rows, start: float, sentences: Mapping[int, Sequence[Word]]) -> dict[int, Group]:
    """Return the words of each sentence; nothing if they do not fit at all."""
    words = [word for sentence in sentences.values() for word in sentence]
    firsts = set(accumulate(map(len, sentences.values()), initial=0))
    aligned = align(part, words, start, firsts) if _is_small(part, words) else None
    if aligned is None:
        return {}
    flat = iter(_with_silent(words, aligned.words))
    return {number: list(islice(flat, len(sentence))) for number, sentence in sentences.items()}


def _is_small(part: Rows, words: Sequence[Word]) -> bool:
    """Return whether a forced alignment fits in memory."""
    return len(part) * _size(words) * 2 <= LARGEST


def _mean_score(group: Sequence[SpokenWord]) -> float:
    return sum(word.score * word.units for word in group) / max(1, _size(group))


def _margin(group: Sequence[SpokenWord], limit: float) -> float:
    """Return how far a sentence is above its limit.

    A short one is judged as a word is, and one that is often swallowed is not judged.
    """
    size = _size(group)
    own = WORST if size < MIN_UNITS else max(limit, LARGEST_WORD_SCORE) if size < SENTENCE_UNITS else limit
    return _mean_score(group) - own


def _size(words: Sequence[SpokenWord] | Sequence[Word]) -> int:
    return sum(word.units if isinstance(word, SpokenWord) else len(word.units) for word in words)


def _with_silent(words: Sequence[Word], spoken: Sequence[SpokenWord]) -> Group:
    """Return all words; one without a sound, such as a dash, is where the word before it ends."""
    group = []
    rest = iter(spoken)
    at = spoken[0].span.start if spoken else 0.0
    for word in words:
        if word.units:
            group.append(next(rest))
            at = group[-1].span.end
        else:
            group.append(SpokenWord(word.text, Span(at, at), 0.0, 0))
    return group


def _part(rows: Rows, span: Span) -> tuple[Rows, float]:
    first = max(0, int(span.start * FRAMES_PER_SECOND))
    return rows[first : max(first, int(span.end * FRAMES_PER_SECOND))].astype(np.float32), first / FRAMES_PER_SECOND


# --- anchors ---


def _windows(rows: Rows, sentences: Sequence[Sequence[Word]]) -> list[tuple[tuple[int, int], Span]]:
    """Return ranges of sentences with the span where they are spoken."""
    seconds = len(rows) / FRAMES_PER_SECOND
    if len(rows) * sum(map(_size, sentences)) * 2 <= LARGEST:
        return [((0, len(sentences)), Span(0.0, seconds))]
    borders = [(0, 0.0)]
    for sentence, time in _starts(rows, sentences):
        if sentence > borders[-1][0] and time - borders[-1][1] >= WINDOW_SECONDS:
            borders.append((sentence, time))
    borders.append((len(sentences), seconds))
    return [((a, b), Span(max(0.0, start - 4.0), end + 4.0)) for (a, start), (b, end) in pairwise(borders) if b > a]


def _starts(rows: Rows, sentences: Sequence[Sequence[Word]]) -> Iterator[tuple[int, float]]:
    """Yield sentences that begin soon after an anchor, with the time."""
    written = units_in(word for words in sentences for word in words)
    firsts = [0, *accumulate(map(_size, sentences))]
    heard, starts = heard_units(rows)
    times = starts / FRAMES_PER_SECOND
    for here, there in _anchors(heard, times, np.array(written, np.int64)):
        sentence = bisect_left(firsts, there)
        if sentence < len(sentences) and firsts[sentence] - there <= 60:
            yield sentence, times[here] + (firsts[sentence] - there) / 14


def _anchors(heard: Int64Array, times: Float64Array, written: Int64Array) -> list[tuple[int, int]]:
    """Return places (heard, written) of the same run of units, in the order of both."""
    ours = _runs(heard)
    theirs = _runs(written)
    _, here, there = np.intersect1d(ours[0], theirs[0], assume_unique=True, return_indices=True)
    pairs = sorted(zip(ours[1][here].tolist(), theirs[1][there].tolist(), strict=True))
    chain = [pairs[at] for at in _longest_rising([there for _, there in pairs])]
    return [pair for number, pair in enumerate(chain) if _is_supported(chain, number, times)]


def _runs(units: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the runs of units that occur once, as numbers, with their places."""
    if len(units) < RUN:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    numbers = np.zeros(len(units) - RUN + 1, np.int64)
    for offset in range(RUN):
        numbers = numbers * 64 + units[offset : offset + len(numbers)]
    values, places, counts = np.unique(numbers, return_index=True, return_counts=True)
    return values[counts == 1], places[counts == 1]


def _longest_rising(values: Sequence[int]) -> list[int]:
    """Return the places of the longest rising subsequence."""
    tails: list[int] = []
    ends: list[int] = []
    before = [-1] * len(values)
    for at, value in enumerate(values):
        length = bisect_left(tails, value)
        before[at] = ends[length - 1] if length else -1
        tails[length : length + 1] = [value]
        ends[length : length + 1] = [at]
    chain = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(at)
        at = before[at]
    return chain[::-1]


def _is_supported(chain: Sequence[tuple[int, int]], number: int, times: Float64Array) -> bool:
    """Return whether a neighbour agrees on how fast the text is spoken here."""
    for other in (number - 1, number + 1):
        if 0 <= other < len(chain):
            (here, there), (here2, there2) = sorted((chain[number], chain[other]))
            seconds = float(times[here2] - times[here])
            said = there2 - there
            slowest, fastest = UNITS_PER_SECOND
            if seconds < SUPPORT_SECONDS and slowest * seconds <= said + RUN and said <= fastest * seconds + RUN:
                return True
    return False
