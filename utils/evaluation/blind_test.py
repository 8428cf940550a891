"""Blind comparison of models: pairs in random order, votes in a file, and what the votes say.

The page shows a pair by its ``token`` and plays ``left`` and ``right`` under neutral names, because their paths name
the model. A vote stores the names of the models, so it stays valid when the report grows.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal, NamedTuple

from utils.core.errors import DataError
from utils.core.events import EventLog, iter_events
from utils.evaluation.report import EvaluationReport
from utils.evaluation.results import digest

FILE = "votes.jsonl"
SIGNIFICANCE = 0.05
Choice = Literal["left", "right", "same"]
CHOICES = ("left", "right", "same")


@dataclass(frozen=True)
class BlindPair:
    """The same sentence spoken by two models."""

    token: str  # identifies the pair without naming the models
    text: str
    left: Path  # audio offered first
    right: Path
    left_is: str  # model of the left audio
    right_is: str


class Vote(NamedTuple):
    """A vote; the last vote of a voter on a pair counts. ``winner`` is empty when both were equally good."""

    token: str
    voter: str
    first: str
    second: str
    winner: str


@dataclass(frozen=True)
class Tally:
    """The votes on two models."""

    first: str
    second: str
    wins: int  # votes for the first
    losses: int  # votes for the second
    ties: int
    p_value: float  # probability of so clear a result by chance (two-sided binomial test, ties left out)

    def __str__(self) -> str:
        counts = f"{self.wins} to {self.losses}, {self.ties} ties; p = {self.p_value:.2g}"
        if self.p_value >= SIGNIFICANCE or self.wins == self.losses:
            return f"{self.first} and {self.second}: no significant preference ({counts})."
        winner, loser = (self.first, self.second) if self.wins > self.losses else (self.second, self.first)
        return f"{winner} is preferred to {loser} ({counts})."


def blind_pairs(report: EvaluationReport, seed: int) -> list[BlindPair]:
    """Pair the models sentence by sentence in random order; each model is on the left in half of its pairs."""
    shuffler = random.Random(seed)  # noqa: S311  an order, not a secret
    pairs: list[BlindPair] = []
    for first, second in combinations(report.checkpoints, 2):
        one, other = ({result.sentence: result for result in report.of(name) if result.wav} for name in (first, second))
        shared = sorted(one.keys() & other.keys())
        shuffler.shuffle(shared)
        for number, sentence in enumerate(shared):
            sides = one[sentence], other[sentence]
            left, right = sides if number % 2 else sides[::-1]
            token = digest("pair", seed, sorted((left.key, right.key)))
            paths = report.folder / left.wav, report.folder / right.wav
            pairs.append(BlindPair(token, left.text, *paths, left.checkpoint, right.checkpoint))
    shuffler.shuffle(pairs)
    return pairs


def save_vote(path: Path, pair: BlindPair, choice: Choice, voter: str = "") -> None:
    if choice not in CHOICES:
        raise DataError(f"Unknown choice {choice!r}.", hint=f"Choose {', '.join(CHOICES)}.")
    winner = {"left": pair.left_is, "right": pair.right_is, "same": ""}[choice]
    first, second = sorted((pair.left_is, pair.right_is))
    with EventLog(path) as log:
        log.emit("vote", token=pair.token, voter=voter, first=first, second=second, winner=winner, choice=choice)


def read_votes(path: Path) -> list[Vote]:
    votes: dict[tuple[str, str], Vote] = {}
    for event in iter_events(path):
        if event["kind"] == "vote" and all(field in event for field in Vote._fields):
            vote = Vote(*(str(event[field]) for field in Vote._fields))
            votes[vote.token, vote.voter] = vote
    return list(votes.values())


def tally(votes: Iterable[Vote]) -> list[Tally]:
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for vote in votes:
        counts[vote.first, vote.second][vote.winner] += 1
    return [
        Tally(first, second, won[first], won[second], won[""], binomial_p_value(won[first], won[second]))
        for (first, second), won in sorted(counts.items())
    ]


def binomial_p_value(wins: int, losses: int) -> float:
    """Return the probability of a result at least as clear by coin tosses (exact, two-sided)."""
    from scipy.stats import binomtest

    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def remaining_pairs(pairs: Sequence[BlindPair], votes: Iterable[Vote], voter: str = "") -> list[BlindPair]:
    done = {vote.token for vote in votes if vote.voter == voter}
    return [pair for pair in pairs if pair.token not in done]
