"""Which differences between models are more than chance: the same sentences, in pairs, drawn again and again."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from utils.evaluation.utterance import METRICS, Metric, Utterance

DRAWS, BLOCK = 10_000, 100
CERTAIN = 0.95
FEWEST = 8  # pairs; with fewer the interval of a bootstrap is too narrow to be believed


@dataclass(frozen=True)
class Difference:
    """How far two models differ in one figure.

    Attributes:
        metric: Name of the figure.
        first: One model.
        second: The other.
        mean: Mean of the second minus that of the first, over the sentences that both spoke.
        low: Lower end of the interval that holds the true difference with 95 % certainty.
        high: Its upper end.
        pairs: Sentences that both spoke.
    """

    metric: str
    first: str
    second: str
    mean: float
    low: float
    high: float
    pairs: int

    @property
    def winner(self) -> str:
        """Return the better model; empty where the difference may be chance."""
        if self.pairs < FEWEST or self.low <= 0 <= self.high:
            return ""
        return self.second if (self.mean > 0) == (_metric(self.metric).better == "higher") else self.first

    def __str__(self) -> str:
        """Say it in a sentence."""
        metric, shown = _metric(self.metric), self._interval()
        if self.winner:
            loser = self.first if self.winner == self.second else self.second
            return f"{metric.title}: {self.winner} is better than {loser} by {shown}."
        if self.pairs < FEWEST:
            return f"{metric.title}: {self.pairs} sentences are too few to compare {self.first} and {self.second}."
        return f"{metric.title}: {self.first} and {self.second} may differ by chance only ({shown})."

    def _interval(self) -> str:
        metric = _metric(self.metric)
        turned = (self.low, self.high) if self.mean >= 0 else (-self.high, -self.low)
        ends = " to ".join(metric.show_gap(value) for value in turned)
        return f"{metric.show_gap(abs(self.mean))}; with 95 % certainty {ends}, {self.pairs} sentences"


def compare(utterances: Sequence[Utterance], seed: int = 0) -> list[Difference]:
    """Compare all pairs of models in every figure that both have; the order of names is that of the utterances."""
    names = list(dict.fromkeys(one.checkpoint for one in utterances))
    return [
        found
        for first, second in combinations(names, 2)
        for metric in METRICS
        if (found := difference(utterances, metric, first, second, seed))
    ]


def difference(
    utterances: Sequence[Utterance], metric: Metric, first: str, second: str, seed: int = 0
) -> Difference | None:
    """Compare two models in one figure; None when they share no sentence that has it."""
    one, other = ({**_values(utterances, metric, name)} for name in (first, second))
    shared = [sentence for sentence in one if sentence in other]
    if not shared:
        return None
    gaps = np.array([other[sentence] - one[sentence] for sentence in shared])
    low, high = interval(gaps, seed)
    return Difference(metric.name, first, second, float(gaps.mean()), low, high, gaps.size)


def interval(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", seed: int = 0) -> tuple[float, float]:
    """Return where the mean lies with 95 % certainty, by drawing as many values again, 10 000 times."""
    random = np.random.default_rng(seed)
    means = [values[random.integers(values.size, size=(BLOCK, values.size))].mean(1) for _ in range(DRAWS // BLOCK)]
    rest = 100 * (1 - CERTAIN) / 2
    low, high = np.percentile(np.concatenate(means), [rest, 100 - rest])
    return float(low), float(high)


def _values(utterances: Sequence[Utterance], metric: Metric, name: str) -> dict[str, float]:
    """Return a model's values by sentence."""
    found = ((one.sentence, metric.value(one)) for one in utterances if one.checkpoint == name)
    return {sentence: value for sentence, value in found if value is not None}


def _metric(name: str) -> Metric:
    return next(metric for metric in METRICS if metric.name == name)
