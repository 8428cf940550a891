"""What the training benchmark finds, and the figures that follow from it."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any, Self

from benchmarks.training_plan import Memory, Plan, Round

EPOCHS = 3  # that the one-time feature pass is spread over


@dataclass
class Measured:
    """What was found of one side.

    Attributes:
        rounds: Its rounds, without the first, which warms up.
        memory: What its process has needed during them.
        loss_before: Mean loss over all clips with the initial weights, by coqui's evaluation on every side.
        loss_after: The same after the last round.
        updates: Updates between the two.
        notes: What a reader should know of it.
    """

    rounds: list[Round]
    memory: Memory
    loss_before: float
    loss_after: float
    updates: int
    notes: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, data: dict[str, Any]) -> Self:
        """Read it back from JSON."""
        rounds = [Round(**one) for one in data["rounds"]]
        return cls(**{**data, "rounds": rounds, "memory": Memory(**data["memory"])})

    @property
    def speed(self) -> float:
        """Return the clips a second, the median of the rounds."""
        return median(one.speed for one in self.rounds)

    @property
    def sound(self) -> float:
        """Return the seconds of sound a second, the median of the rounds."""
        return median(one.sound / one.seconds for one in self.rounds)

    @property
    def work(self) -> float:
        """Return the processor seconds for a clip, the median of the rounds."""
        return median(one.work / one.clips for one in self.rounds)


def ratios_of(base: Measured, side: Measured) -> list[float]:
    """Return how many times faster a side was in each pair of rounds."""
    return [one.speed / other.speed for one, other in zip(side.rounds, base.rounds, strict=True)]


@dataclass
class Comparison:
    """Both sides under one plan.

    Attributes:
        plan: The conditions.
        coqui: Plain coqui.
        ours: Our training.
        padded: The same with references padded to 6 s, as coqui has them.
        feature_seconds: What our one-time pass over all clips took.
        feature_work: The same in processor seconds.
        hardware: What it ran on.
        command: What was typed.
        date: When.
    """

    plan: Plan
    coqui: Measured
    ours: Measured
    padded: Measured
    feature_seconds: float
    feature_work: float
    hardware: str
    command: str
    date: str

    @classmethod
    def read(cls, data: dict[str, Any]) -> Self:
        """Read it back from JSON, where more stands beside it."""
        coqui, ours, padded = (Measured.read(data[name]) for name in ("coqui", "ours", "padded"))
        known = {name: data[name] for name in ("feature_seconds", "feature_work", "hardware", "command", "date")}
        return cls(Plan(**data["plan"]), coqui, ours, padded, **known)

    @property
    def ratios(self) -> list[float]:
        """Return how many times faster ours was in each pair of rounds."""
        return ratios_of(self.coqui, self.ours)

    @property
    def ratio(self) -> float:
        """Return how many times faster ours is: the quotient of the medians."""
        return self.ours.speed / self.coqui.speed

    @property
    def speed_with_features(self) -> float:
        """Return our clips a second when the feature pass is spread over a few epochs."""
        return self.with_features(self.ours)

    def with_features(self, side: Measured) -> float:
        """Return the same of one of our sides."""
        return 1 / (1 / side.speed + self.feature_seconds / self.plan.clips / EPOCHS)

    @property
    def ratio_with_features(self) -> float:
        """Return how many times faster ours is then."""
        return self.speed_with_features / self.coqui.speed

    @property
    def memory_share(self) -> float:
        """Return our peak as a share of coqui's, on the device that computes."""
        if self.plan.device == "cuda":
            return self.ours.memory.device / self.coqui.memory.device
        return self.ours.memory.peak / self.coqui.memory.peak


@dataclass
class SwitchRow:
    """What one switch does.

    Attributes:
        name: In words.
        settings: The fields that were changed.
        speed: Clips a second as a multiple of the baseline's.
        peak: Peak of the device that computes, in MiB.
        loss: Mean loss over all clips after the updates.
        note: What it changed, or why it was refused.
    """

    name: str
    settings: dict[str, object]
    speed: float | None = None
    peak: float | None = None
    loss: float | None = None
    note: str = ""


@dataclass
class SwitchTable:
    """All switches under one plan.

    Attributes:
        plan: The conditions.
        updates: After which the loss is taken.
        rows: One for each switch; the first is the baseline.
        hardware: What it ran on.
        command: What was typed.
        date: When.
    """

    plan: Plan
    updates: int
    rows: list[SwitchRow]
    hardware: str
    command: str
    date: str

    @classmethod
    def read(cls, data: dict[str, Any]) -> Self:
        """Read it back from JSON, where more stands beside it."""
        known = {name: data[name] for name in ("updates", "hardware", "command", "date")}
        return cls(plan=Plan(**data["plan"]), rows=[SwitchRow(**row) for row in data["rows"]], **known)
