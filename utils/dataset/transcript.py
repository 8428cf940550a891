"""Find the words of a text in a recording: subtitle by subtitle, or a whole transcript without times.

A long transcript is first tied to the sound by anchors: runs of units that are heard once and written once. Between
two anchors a forced alignment finds the words. What the text has and the sound lacks, or the other way round, stays
between its anchors, however long it is.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from utils.recognition.aligner import Rows, SpokenWord, align
from utils.recognition.phone_recogniser import FRAMES_PER_SECOND
from utils.recognition.spans import Cue, Span
from utils.recognition.units import Units, Word

Integers = npt.NDArray[np.int64]

CUE_SLACK = 0.75  # seconds by which a subtitle may begin too late or end too early
RUN = 6  # units of an anchor
SUPPORT_SECONDS = 30.0  # within which another anchor must agree
UNITS_PER_SECOND = (3.0, 30.0)  # of anything that is said
WINDOW_SECONDS = 12.0  # between two anchors that are used
LARGEST = 60_000_000  # frames times units of one forced alignment: 120 MB
SENTENCE_UNITS = 12  # a shorter sentence is not judged alone

Group = list[SpokenWord]  # the words of a subtitle or a sentence


def words_of_cues(rows: Rows, cues: Sequence[Cue], units: Units, limit: float) -> list[Group]:
    """Find each subtitle near its times; where it is not spoken, its words are spread over them."""
    groups, last = [], 0.0
    for cue in cues:
        span = Span(max(last, cue.span.start - CUE_SLACK), cue.span.end + CUE_SLACK)
        words = units.words(cue.text)
        part, start = _part(rows, span)
        aligned = align(part, words, start)
        is_spoken = aligned is not None and _mean_score(aligned.words) >= limit
        group = _with_silent(words, aligned.words) if aligned and is_spoken else spread(words, cue.span)
        groups.append(group)
        if group:
            last = max(last, group[-1].span.end - CUE_SLACK / 2)
    return groups


def words_of_transcript(
    rows: Rows, sentences: Sequence[str], units: Units, limit: float
) -> tuple[list[Group], list[str]]:
    """Find the sentences of a transcript; return their words, and the sentences that are not in the recording."""
    written = [units.words(sentence) for sentence in sentences]
    found: list[Group] = []
    missing: list[str] = []
    for (first, end), span in _windows(rows, written):
        groups, lost = _align_window(rows, span, written[first:end], limit)
        found += groups
        missing += [sentences[first + number] for number in lost]
    return found, missing


def spread(words: Sequence[Word], span: Span) -> Group:
    """Spread words evenly over a span."""
    step = span.seconds / max(1, len(words))
    return [
        SpokenWord(
            word.text, Span(span.start + number * step, span.start + (number + 1) * step), -20.0, len(word.units)
        )
        for number, word in enumerate(words)
    ]


def _align_window(
    rows: Rows, span: Span, sentences: Sequence[Sequence[Word]], limit: float
) -> tuple[list[Group], list[int]]:
    """Align sentences in a window; leave out those that are not spoken there, the worst first."""
    part, start = _part(rows, span)
    left = [number for number, words in enumerate(sentences) if any(word.units for word in words)]
    lost: list[int] = []
    while left:
        words = [word for number in left for word in sentences[number]]
        size = sum(len(word.units) for word in words)
        aligned = align(part, words, start) if len(part) * size * 2 <= LARGEST else None
        if aligned is None:  # more text than sound: what is said is near the anchors on both sides
            lost.append(left.pop(len(left) // 2))
            continue
        flat = _with_silent(words, aligned.words)
        groups, at = [], 0
        for number in left:
            groups.append(flat[at : at + len(sentences[number])])
            at += len(sentences[number])
        scores = [_mean_score(group) for group in groups]
        worst = int(np.argmin(scores))
        if scores[worst] >= limit:
            return groups, sorted(lost)
        lost.append(left.pop(worst))
    return [], sorted(lost)


def _mean_score(group: Sequence[SpokenWord]) -> float:
    size = sum(word.units for word in group)
    if size < SENTENCE_UNITS:
        return 0.0
    return sum(word.score * word.units for word in group) / size


def _with_silent(words: Sequence[Word], spoken: Sequence[SpokenWord]) -> Group:
    """Return all words; one without a sound, such as a dash, is where the word before it ends."""
    group: Group = []
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
    sizes = [sum(len(word.units) for word in words) for words in sentences]
    seconds = len(rows) / FRAMES_PER_SECOND
    if len(rows) * sum(sizes) * 2 <= LARGEST:
        return [((0, len(sentences)), Span(0.0, seconds))]
    starts = [0, *np.cumsum(sizes).tolist()]
    written = np.array([unit for words in sentences for word in words for unit in word.units], np.int64)
    heard, times = _heard(rows)
    borders = [(0, 0.0)]
    for here, there in _anchors(heard, times, written):
        sentence = bisect_left(starts, there)  # the first sentence that begins after the anchor
        near = starts[sentence] - there if sentence < len(sizes) else len(written)
        if sentence >= len(sizes) or near > 60 or sentence <= borders[-1][0]:
            continue
        time = times[here] + near / 14
        if time - borders[-1][1] >= WINDOW_SECONDS:
            borders.append((sentence, time))
    borders.append((len(sentences), seconds))
    return [((a, b), Span(max(0.0, start - 4.0), end + 4.0)) for (a, start), (b, end) in pairwise(borders) if b > a]


def _heard(rows: Rows) -> tuple[Integers, npt.NDArray[np.float64]]:
    """Return the units of the free path and their times."""
    best = rows.argmax(1)
    starts = np.flatnonzero((np.diff(best, prepend=0) != 0) & (best != 0))
    return best[starts].astype(np.int64), starts / FRAMES_PER_SECOND


def _anchors(heard: Integers, times: npt.NDArray[np.float64], written: Integers) -> list[tuple[int, int]]:
    """Return places (heard, written) of the same run of units, in the order of both."""
    ours, theirs = _runs(heard), _runs(written)
    _, here, there = np.intersect1d(ours[0], theirs[0], assume_unique=True, return_indices=True)
    pairs = sorted(zip(ours[1][here].tolist(), theirs[1][there].tolist(), strict=True))
    chain = [pairs[at] for at in _longest_rising([there for _, there in pairs])]
    return [pair for number, pair in enumerate(chain) if _is_supported(chain, number, times)]


def _runs(units: Integers) -> tuple[Integers, Integers]:
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
    chain, at = [], ends[-1] if ends else -1
    while at >= 0:
        chain.append(at)
        at = before[at]
    return chain[::-1]


def _is_supported(chain: Sequence[tuple[int, int]], number: int, times: npt.NDArray[np.float64]) -> bool:
    """Return whether a neighbour agrees on how fast the text is spoken here."""
    for other in (number - 1, number + 1):
        if 0 <= other < len(chain):
            (here, there), (here2, there2) = sorted((chain[number], chain[other]))
            seconds, said = float(times[here2] - times[here]), there2 - there
            slowest, fastest = UNITS_PER_SECOND
            if seconds < SUPPORT_SECONDS and slowest * seconds <= said + RUN and said <= fastest * seconds + RUN:
                return True
    return False
