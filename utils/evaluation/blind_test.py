"""Judging by ear without knowing what one hears: pairs in hidden order, votes in a file, and what they say together.

A page shows a ``Pair`` under its ``token`` and plays ``left`` and ``right`` under neutral names: their paths tell the
model. Each vote is kept with the names that stood behind it, so votes stay valid when a report grows.
"""

import math
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
from utils.evaluation.utterance import Utterance, digest

FILE = "votes.jsonl"
CERTAIN = 0.05  # chance at which a preference is called one
Choice = Literal["left", "right", "same"]
CHOICES = ("left", "right", "same")


@dataclass(frozen=True)
class BlindPair:
    """Two models speaking the same sentence.

    Attributes:
        token: What a page may call it; it tells nothing about the models.
        text: What is said.
        left: Sound that is offered first.
        right: Sound that is offered second.
        left_is: Model behind the left one, to be hidden.
        right_is: Model behind the right one, to be hidden.
    """

    token: str
    text: str
    left: Path
    right: Path
    left_is: str
    right_is: str


class Vote(NamedTuple):
    """What somebody preferred.

    Attributes:
        token: The pair.
        voter: Who; the last vote of a voter on a pair counts.
        first: One model.
        second: The other.
        winner: The better one; empty when both were alike.
    """

    token: str
    voter: str
    first: str
    second: str
    winner: str


@dataclass(frozen=True)
class Tally:
    """What the votes say about two models.

    Attributes:
        first: One model.
        second: The other.
        wins: Votes for the first.
        losses: Votes for the second.
        alike: Votes for neither.
        chance: Probability of so clear a result if nobody heard a difference; votes for neither do not count.
    """

    first: str
    second: str
    wins: int
    losses: int
    alike: int
    chance: float

    def __str__(self) -> str:
        """Say it in a sentence."""
        counts = f"{self.wins} to {self.losses}, {self.alike} alike"
        if self.chance >= CERTAIN or self.wins == self.losses:
            return f"{self.first} and {self.second}: no preference beyond chance ({counts}; p = {self.chance:.2g})."
        winner, loser = (self.first, self.second) if self.wins > self.losses else (self.second, self.first)
        return f"{winner} is preferred to {loser} ({counts}; p = {self.chance:.2g})."


def blind_pairs(report: EvaluationReport, seed: int) -> list[BlindPair]:
    """BlindPair the models sentence by sentence, in random order; each model stands on the left in half of its pairs.

    The same report and seed give the same pairs.
    """
    chance = random.Random(seed)  # noqa: S311  an order, not a secret
    pairs: list[BlindPair] = []
    for first, second in combinations(report.checkpoints, 2):
        one, other = ({said.sentence: said for said in report.of(name) if said.wav} for name in (first, second))
        shared = sorted(one.keys() & other.keys())
        chance.shuffle(shared)
        for number, sentence in enumerate(shared):
            sides = one[sentence], other[sentence]
            pairs.append(_pair(report.folder, *(sides if number % 2 else sides[::-1]), seed))
    chance.shuffle(pairs)
    return pairs


def save_vote(path: Path, pair: BlindPair, choice: Choice, voter: str = "") -> None:
    """Append what somebody preferred; a vote reaches the file whole or not at all."""
    if choice not in CHOICES:
        raise DataError(f"{choice!r} is no choice.", hint=f"Choose {', '.join(CHOICES)}.")
    winner = {"left": pair.left_is, "right": pair.right_is, "same": ""}[choice]
    first, second = sorted((pair.left_is, pair.right_is))
    with EventLog(path) as log:
        log.emit("vote", token=pair.token, voter=voter, first=first, second=second, winner=winner, choice=choice)


def read_votes(path: Path) -> list[Vote]:
    """Read the votes; of several by one voter on a pair the last counts."""
    votes: dict[tuple[str, str], Vote] = {}
    for event in iter_events(path):
        if event["kind"] == "vote" and all(field in event for field in Vote._fields):
            found = Vote(*(str(event[field]) for field in Vote._fields))
            votes[found.token, found.voter] = found
    return list(votes.values())


def tally(votes: Iterable[Vote]) -> list[Tally]:
    """Count the votes for each two models."""
    counts: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for one in votes:
        counts[one.first, one.second][one.winner] += 1
    return [
        Tally(first, second, found[first], found[second], found[""], binomial_p_value(found[first], found[second]))
        for (first, second), found in sorted(counts.items())
    ]


def binomial_p_value(wins: int, losses: int) -> float:
    """Return the probability of a result at least as clear by coin tosses (exact binomial test, both sides)."""
    tosses, fewer = wins + losses, min(wins, losses)
    tail = sum(math.comb(tosses, heads) for heads in range(fewer + 1))
    return float(min(1.0, 2 * tail / 2**tosses))


def remaining_pairs(pairs: Sequence[BlindPair], votes: Iterable[Vote], voter: str = "") -> list[BlindPair]:
    """Return the pairs that somebody has not judged yet."""
    done = {one.token for one in votes if one.voter == voter}
    return [pair for pair in pairs if pair.token not in done]


def _pair(folder: Path, one: Utterance, other: Utterance, seed: int) -> BlindPair:
    token = digest("pair", seed, sorted((one.key, other.key)))
    return BlindPair(token, one.text, folder / one.wav, folder / other.wav, one.checkpoint, other.checkpoint)
