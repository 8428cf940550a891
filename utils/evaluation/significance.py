"""Tell differences between models from chance: a paired bootstrap over the sentences that both spoke."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from utils.evaluation.results import METRICS, EvaluatedUtterance, Metric

DRAWS, BLOCK = 10_000, 100
CONFIDENCE = 0.95
MIN_PAIRS = 8  # with fewer, a bootstrap interval is too narrow


@dataclass(frozen=True)
class Difference:
    """The difference of two models in one metric.

    Attributes:
        metric: Name of the metric.
        first: One model.
        second: The other.
        mean: Mean of the second minus mean of the first, over shared sentences.
        low: Lower end of the 95 % confidence interval.
        high: Upper end.
        pairs: Number of shared sentences.
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
        """Return the better model, or "" where the difference may be chance."""
        if self.pairs < MIN_PAIRS or self.low <= 0 <= self.high:
            return ""
        return self.second if (self.mean > 0) == (_metric(self.metric).better == "higher") else self.first

    def __str__(self) -> str:
        metric = _metric(self.metric)
        if self.pairs < MIN_PAIRS:
            return f"{metric.title}: {self.pairs} sentences are too few to compare {self.first} and {self.second}."
        low, high = (self.low, self.high) if self.mean >= 0 else (-self.high, -self.low)
        interval = f"95 % CI {metric.format_difference(low)} to {metric.format_difference(high)}"
        shown = f"{metric.format_difference(abs(self.mean))} ({interval}; {self.pairs} sentences)"
        if not self.winner:
            return f"{metric.title}: no significant difference between {self.first} and {self.second}: {shown}."
        loser = self.first if self.winner == self.second else self.second
        return f"{metric.title}: {self.winner} is better than {loser} by {shown}."


def compare(utterances: Sequence[EvaluatedUtterance], seed: int = 0) -> list[Difference]:
    """Compare every two models in every metric that both have."""
    names = list(dict.fromkeys(result.checkpoint for result in utterances))
    return [
        gap
        for first, second in combinations(names, 2)
        for metric in METRICS
        if (gap := difference(utterances, metric, first, second, seed))
    ]


def difference(
    utterances: Sequence[EvaluatedUtterance], metric: Metric, first: str, second: str, seed: int = 0
) -> Difference | None:
    """Compare two models in one metric; None when they share no sentence that has it."""
    one, other = (_values(utterances, metric, name) for name in (first, second))
    shared = [sentence for sentence in one if sentence in other]
    if not shared:
        return None
    gaps = np.array([other[sentence] - one[sentence] for sentence in shared])
    low, high = confidence_interval(gaps, seed)
    return Difference(metric.name, first, second, float(gaps.mean()), low, high, gaps.size)


def confidence_interval(values: "np.ndarray[tuple[int], np.dtype[np.float64]]", seed: int = 0) -> tuple[float, float]:
    """Return the 95 % bootstrap confidence interval of the mean."""
    random = np.random.default_rng(seed)
    means = [values[random.integers(values.size, size=(BLOCK, values.size))].mean(1) for _ in range(DRAWS // BLOCK)]
    tail = 100 * (1 - CONFIDENCE) / 2
    low, high = np.percentile(np.concatenate(means), [tail, 100 - tail])
    return float(low), float(high)


def _values(utterances: Sequence[EvaluatedUtterance], metric: Metric, name: str) -> dict[str, float]:
    """Return the values of one model by sentence."""
    values = ((result.sentence, metric.value(result)) for result in utterances if result.checkpoint == name)
    return {sentence: value for sentence, value in values if value is not None}


def _metric(name: str) -> Metric:
    return next(metric for metric in METRICS if metric.name == name)
