"""Forced alignment: where each word of a text is spoken, and how well the text explains the sound.

Between the words, and at both ends, the path may pass through a wildcard that explains any sound at a small cost. What
it covers is speech that the text lacks. Scores are differences to the free path, the most likely units whatever the
text, so that noise and a weak recogniser lower both.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

import numpy as np
import numpy.typing as npt
import torch
from torchaudio.functional import forced_align

from utils.media.arrays import Float16Array, Float32Array, Int64Array
from utils.media.audio import NO_SAMPLES, Samples
from utils.recognition.phone_recogniser import FRAMES_PER_SECOND, HOP, RATE, STRIDE, PhoneRecogniser, log_mels
from utils.recognition.spans import Span
from utils.recognition.units import Word, units_in

Rows = Float32Array  # log-probabilities (frame, unit)
AnyRows = npt.NDArray[np.floating]  # those of a long sound have half precision

WILDCARD_COST, LOOSE_COST = 0.4, 0.1  # per frame: within a text, and between sentences
WORST = -20.0  # score per unit of a text that has more units than the sound has frames
MARGIN = RATE  # samples on both sides of a block, so that its edges are heard as its middle
TIES = 1e-3  # noise that makes no two paths equally good
APART = 15  # frames between two units of a word, which are hardly ever more than ten
STRAY = 0.4  # largest share of a word that may be astray
FLOOR = -16.0  # of a log-probability
ROW = HOP * STRIDE  # samples per row


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A word, when it is spoken, and how well its units explain the sound there (0 is best, per unit)."""

    text: str
    span: Span
    score: float
    units: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Speech between two words that the text lacks: evidence in nats against silence, and the units that are heard.

    A single unit does not count as evidence: a transition between two sounds can add one, with up to 13 nats.
    """

    span: Span
    evidence: float
    units: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Alignment:
    """A text on a sound."""

    score: float  # of all units, per unit, without wildcards; 0 is best
    words: tuple[SpokenWord, ...]
    gaps: tuple[Gap, ...]  # before each word, and after the last one


def emit(model: PhoneRecogniser, samples: Samples) -> Rows:
    """Return the rows of a sound."""
    with torch.inference_mode():
        return np.asarray(model(log_mels(samples)[None])[0].clamp_min(FLOOR).numpy(), np.float32)


def emit_blocks(models: Sequence[PhoneRecogniser], blocks: Iterator[Samples], first: int) -> Rows:
    """Return the rows of a long sound at 16 kHz with half precision, each block from the next recogniser in turn."""
    parts: list[Float16Array] = []
    before = NO_SAMPLES
    block = next(blocks, None)
    while block is not None:
        after = next(blocks, None)
        near = after[:MARGIN] if after is not None else NO_SAMPLES
        rows = emit(models[(first + len(parts)) % len(models)], np.concatenate([before, block, near]))
        start = before.size // ROW
        parts.append(rows[start : start + -(-block.size // ROW)].astype(np.float16))
        before = block[-MARGIN:]
        block = after
    return np.concatenate(parts) if parts else np.zeros((0, 1), np.float16)


def score(rows: Rows, units: Sequence[int]) -> float:
    """Return how well these units explain the sound, per unit."""
    path = _path(rows, units)
    if path is None:
        return WORST
    lost = rows[np.arange(len(path)), path] - rows.max(1)
    return max(WORST, float(lost.sum()) / len(units))


# Long because words, gaps and scores are all cut from one path.
def align(rows: Rows, words: Sequence[Word], start: float = 0.0, apart: Collection[int] = ()) -> Alignment | None:
    """Find the words of a text in the rows of a sound that starts at ``start``; None if they do not fit at all.

    Before the words whose numbers are ``apart``, such as the first of each sentence, long speech may be without text.
    """
    spoken = [word for word in words if word.units]
    if not spoken:
        return None
    wildcard = rows.shape[1]
    loose = wildcard + 1
    targets = []
    for number, word in enumerate(words):
        if word.units:
            targets += [loose if number in apart else wildcard, *word.units]
    targets.append(loose if apart else wildcard)
    best = rows.max(1)
    path = _path(np.column_stack([rows, best - WILDCARD_COST, best - LOOSE_COST]).astype(np.float32), targets)
    if path is None:
        return None
    lost = np.where(path >= wildcard, 0.0, rows[np.arange(len(path)), np.minimum(path, wildcard - 1)] - best)
    each = _own_tokens(path, spoken)
    found = []
    for word, own in zip(spoken, each, strict=True):
        worth = max(WORST, float(lost[own[0][0] : own[-1][1]].sum()) / len(word.units))
        found.append(SpokenWord(word.text, _span(*_body(own), start), worth, len(word.units)))
    pauses = zip((0, *(own[-1][1] for own in each)), (*(own[0][0] for own in each), len(path)), strict=True)
    return Alignment(score(rows, units_in(spoken)), tuple(found), tuple(_gap(rows, *pause, start) for pause in pauses))


def _own_tokens(path: Int64Array, spoken: Sequence[Word]) -> list[list[tuple[int, int]]]:
    """Return the (first, end) frames of the units of each word; on the path, a wildcard stands before it."""
    tokens = iter(_tokens(path))
    return [list(islice(tokens, 1 + len(word.units)))[1:] for word in spoken]


def heard_units(rows: AnyRows) -> tuple[Int64Array, Int64Array]:
    """Return the units of the free path, and the frames in which they begin."""
    best = rows.argmax(1)
    starts = np.flatnonzero((np.diff(best, prepend=0) != 0) & (best != 0))
    return best[starts], starts


def heard_in(rows: AnyRows, span: Span) -> Gap:
    """Return what is heard in a stretch of a sound that starts at 0."""
    first, end = (max(0, round(time * FRAMES_PER_SECOND)) for time in (span.start, span.end))
    return _gap(rows, first, end, 0.0)


def _path(rows: Rows, units: Sequence[int]) -> Int64Array | None:
    """Return the unit of each frame on the best path through all units; None if there are too few frames."""
    repeats = sum(first == second for first, second in pairwise(units))
    if not units or len(rows) < len(units) + repeats:
        return None
    targets = torch.tensor([list(units)], dtype=torch.int32)
    # Where two ways into a state are equally good, forced_align of torchaudio 2.11 takes the third, whatever it costs.
    noise = np.random.default_rng(0).random(rows.shape, np.float32) * TIES
    labels, _ = forced_align(torch.from_numpy(rows.astype(np.float32) + noise)[None], targets, blank=0)
    return np.asarray(labels[0].numpy(), np.int64)


def _tokens(path: Int64Array) -> list[tuple[int, int]]:
    """Return the (first, end) frames of each target on its path."""
    edges = np.flatnonzero(np.diff(path, prepend=-1, append=-1))
    return [(int(first), int(end)) for first, end in pairwise(edges) if path[first]]


def _body(units: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the (first, end) frames of a word, without what was found far from the rest, as in another sentence."""
    holes = [at for at, (before, after) in enumerate(pairwise(units), 1) if after[0] - before[1] > APART]
    first = max((at for at in holes if at <= len(units) * STRAY), default=0)
    end = min((at for at in holes if at >= len(units) * (1 - STRAY)), default=len(units))
    return units[first][0], units[end - 1][1]


def _gap(rows: AnyRows, first: int, end: int, start: float) -> Gap:
    part = rows[first:end].astype(np.float32, copy=False)
    heard, _ = heard_units(part)
    evidence = float((part.max(1) - part[:, 0]).sum()) if len(heard) > 1 else 0.0
    return Gap(_span(first, end, start), evidence, tuple(heard.tolist()))


def _span(first: int, end: int, start: float) -> Span:
    return Span(start + first / FRAMES_PER_SECOND, start + end / FRAMES_PER_SECOND)
