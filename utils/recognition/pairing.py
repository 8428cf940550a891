"""Which text belongs to which clip, when a list may be shifted, shuffled or of other files.

Texts that share runs of three units with what is heard are aligned with the sound; an assignment then gives each text
to one clip.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from utils.media.arrays import Float64Array, Int64Array
from utils.recognition.aligner import WORST, Rows, heard_units, score

RUN, SYMBOLS = 3, 64  # units of a run, and more symbols than any recogniser has
CANDIDATES = 20  # texts that are aligned with each clip
SURELY = 0.95  # share of the second best texts, all of them wrong, that score lower than any text that fits
CLEARLY = 2.0  # by how much the median of the texts that fit must be above that, in deviations of wrong texts
FAR = 2.0  # times the distance from the median of wrong texts to where almost all are

Scores = Mapping[int, float]  # of the candidates of a clip, by the number of their text


class TextIndex:
    """The texts of a list, found by what is heard."""

    def __init__(self, texts: Sequence[Sequence[int]]) -> None:
        self.texts = texts
        counts = _runs(texts)
        used = np.bincount(counts.indices, minlength=SYMBOLS**RUN)
        self.weights = np.log((1 + len(texts)) / (1 + used)) + 1
        self.runs = _weighted(counts, self.weights)

    def scores(self, rows: Rows, own: int) -> Scores:
        """Return how well the own text of a clip, and those that are most like it, explain the sound."""
        heard, _ = heard_units(rows)
        likeness = (self.runs @ _weighted(_runs([heard]), self.weights).T).toarray()[:, 0]
        nearest = np.argsort(-likeness)[:CANDIDATES].tolist()
        return {at: score(rows, self.texts[at]) for at in {own, *nearest} if self.texts[at]}


def pair(clips: Sequence[Scores], texts: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return the text of each clip that has one which fits, by their numbers."""
    limit = fitting_limit(clips, texts)
    edges = [(clip, at, value) for clip, scores in enumerate(clips) for at, value in scores.items() if value >= limit]
    if not edges:
        return {}
    ours, theirs, values = map(np.array, zip(*edges, strict=True))
    shape = (len(clips) + len(texts),) * 2
    _, groups = connected_components(
        coo_array((np.ones(len(edges)), (ours, theirs + len(clips))), shape), directed=False
    )
    found = dict[int, int]()
    for group in np.unique(groups[ours]):
        inside = groups[ours] == group
        found |= _assign(ours[inside], theirs[inside], values[inside])
    return found


def _assign(clips: Int64Array, texts: Int64Array, values: Float64Array) -> dict[int, int]:
    """Choose pairs of a clip and a text so that each is used once at most and the sum of the values is highest."""
    ours, rows = np.unique(clips, return_inverse=True)
    theirs, columns = np.unique(texts, return_inverse=True)
    matrix = np.full((ours.size, theirs.size), 2 * WORST)
    matrix[rows, columns] = values
    rows, columns = linear_sum_assignment(matrix, maximize=True)
    fits = matrix[rows, columns] > 2 * WORST
    return dict(zip(ours[rows[fits]].tolist(), theirs[columns[fits]].tolist(), strict=True))


def fitting_limit(clips: Sequence[Scores], texts: Sequence[Sequence[int]]) -> float:
    """Return the score that no wrong text reaches: above the second best texts of almost all clips.

    It is infinite where the best texts stand out too little: the recogniser hears too badly, or no text fits.
    """
    seconds = []
    firsts = []
    for scores in filter(None, clips):
        best, *others = sorted(scores, key=lambda at: -scores[at])
        seconds += [scores[at] for at in others if texts[at] != texts[best]][:1]
        firsts.append(scores[best])
    if not seconds:
        return np.inf
    limit = float(np.quantile(seconds, SURELY))
    # Where few texts fit, the best of several wrong ones are above that too, but not far above.
    spread = limit - float(np.median(seconds))
    for least, gap in ((limit, CLEARLY * np.std(seconds)), (limit + FAR * spread, spread)):
        fitting = [value for value in firsts if value >= least]
        if fitting and np.median(fitting) >= least + gap:
            return least
    return np.inf


def _runs(sequences: Sequence[Sequence[int] | Int64Array]) -> csr_array:
    """Return how often each run of units occurs in each sequence."""
    codes = []
    for sequence in sequences:
        units = np.asarray(sequence, np.int64)
        size = max(0, units.size - RUN + 1)
        codes.append(sum((units[at : at + size] * SYMBOLS**at for at in range(RUN)), np.zeros(size, np.int64)))
    places = np.repeat(np.arange(len(codes)), [code.size for code in codes])
    columns = np.concatenate(codes)
    return coo_array((np.ones(columns.size), (places, columns)), (len(codes), SYMBOLS**RUN)).tocsr()


def _weighted(counts: csr_array, weights: Float64Array) -> csr_array:
    weighted = counts.multiply(weights[None]).tocsr()
    sizes = np.sqrt(weighted.multiply(weighted).sum(axis=1))
    return weighted.multiply(1 / np.maximum(sizes, 1e-9)[:, None]).tocsr()
