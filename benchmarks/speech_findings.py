"""What the benchmark of speech finds, and its table."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.training_report import row, share, times

# What is measured of a side in each round, in seconds, except "many": seconds of work for a second of audio.
ONE, MANY, FIRST, FIRST_BY_DEFAULT, STOP = "one", "many", "first", "first_by_default", "stop"
LOADED, LOADING, SPEAKING = "loaded", "loading", "speaking"  # memory in MiB: after loading, and the peaks


@dataclass(frozen=True)
class SpokenSide:
    """What was found of a side.

    Attributes:
        side: "coqui" or "ours".
        gpt: Precision of its GPT.
        vocoder: Precision of its vocoder.
        rounds: Its rounds, without the warm-up.
        memory: What its process needed.
    """

    side: str
    gpt: str
    vocoder: str
    rounds: Sequence[Mapping[str, float]]
    memory: Mapping[str, float]

    @property
    def name(self) -> str:
        """Name the side with its precisions."""
        return f"{self.side}: GPT {self.gpt}, vocoder {self.vocoder}"

    def best(self, what: str) -> float:
        """Return the fastest round; of the stops the slowest one, which is what a listener has to expect."""
        return (max if what == STOP else min)(one[what] for one in self.rounds)


def speech_table(sides: Sequence[SpokenSide], seconds: float, sentences: int) -> tuple[list[str], list[list[str]]]:
    """Lay the sides out beside each other: a head and rows."""
    head = ["", sides[0].name, *itertools.chain.from_iterable((side.name, "ratio") for side in sides[1:])]
    rows = [
        row("one sentence, s", [side.best(ONE) for side in sides], ".2f", _faster),
        row("one sentence, real-time factor", [side.best(ONE) / seconds for side in sides], ".2f", _faster),
        row(f"{sentences} texts, real-time factor", [side.best(MANY) for side in sides], ".2f", _faster),
        row("first sound, 20 codes on both sides, s", [side.best(FIRST) for side in sides], ".2f", _faster),
        row("first sound by default, s", [side.best(FIRST_BY_DEFAULT) for side in sides], ".2f", _faster),
        row("stopped after, ms", [1e3 * side.best(STOP) for side in sides], ".0f", _faster),
        row("memory after loading, MiB", [side.memory[LOADED] for side in sides], ".0f", share),
        row("peak memory while loading, MiB", [side.memory[LOADING] for side in sides], ".0f", share),
        row("peak memory while speaking, MiB", [side.memory[SPEAKING] for side in sides], ".0f", share),
    ]
    return head, rows


def _faster(base: float, value: float) -> str:
    return times(value, base) if value else ""
