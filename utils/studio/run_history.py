"""What a training run has reported so far, read from its events a little at a time.

A log may be a gigabyte. The reader keeps an offset and thinned curves for each run, so each call reads only new events.
"""

import math
import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeGuard

from utils.core.events import BLOCK, Event, LineParser, read_block, tail_offset
from utils.core.facts import Fact, LinesMissing, Optimization, Unrecognised, from_json, to_json
from utils.core.monitor import GpuUse
from utils.dataset.facts import ClipNotEncoded, FeaturesRemoved, LineProblem
from utils.studio.facts import Started
from utils.studio.runs import Run
from utils.training import facts

MAX_POINTS = 1500  # of a curve; more than a screen has pixels
MAX_RUNS = 40  # that are kept in memory
READ_WHOLE = 8 * BLOCK  # of a larger remainder only some training steps are read
BUDGET = 0.12  # seconds of a call
PAUSE_SECONDS = 1.0  # between two calls that read a long log: the page asks several times on each tick
TRAIN_MARK = b'"kind": "train"'
TRAIN = {  # curves by the names of the event's values
    "loss_audio": "loss_audio",
    "loss_text": "loss_text",
    "learning_rate": "rate",
    "samples_per_second": "speed",
    "memory_gb": "memory",
}
EVALUATION = {
    "loss": "eval",
    "loss_audio": "eval_audio",
    "loss_text": "eval_text",
    "loss_without_ema": "eval_raw",
    "loss_other_languages": "eval_others",
}
PROBLEMS = (ClipNotEncoded, FeaturesRemoved, LineProblem)  # with clips or lines
SCORES = ("intelligibility", "endings", "duration", "similarity", "composite")  # of spoken sentences, from 0 to 1

Points = list[tuple[float, float]]


@dataclass
class Curve:
    """Points by step. When there are too many, neighbours are averaged."""

    points: Points = field(default_factory=list)
    per_point: int = 1
    waiting: Points = field(default_factory=list)

    def add(self, step: float, value: float) -> None:
        self.waiting.append((step, value))
        if len(self.waiting) >= self.per_point:
            self.points.append(_mean(self.waiting))
            self.waiting.clear()
        if len(self.points) >= 2 * MAX_POINTS:
            pairs = zip(self.points[::2], self.points[1::2], strict=False)
            self.points = [_mean(list(pair)) for pair in pairs]
            self.per_point *= 2

    def copy(self) -> "Curve":
        return Curve([*self.points], self.per_point, [*self.waiting])

    def cut(self, last: float) -> None:
        """Remove the points after a step."""
        for points in (self.points, self.waiting):
            while points and points[-1][0] > last:
                points.pop()


def is_finite(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _mean(points: Points) -> tuple[float, float]:
    return (sum(step for step, _ in points) / len(points), sum(value for _, value in points) / len(points))


@dataclass
class RunHistory:
    """What a run has reported."""

    curves: dict[str, Curve] = field(default_factory=dict)  # by the names in TRAIN and EVALUATION
    switches: dict[str, Optimization] = field(default_factory=dict)  # what each optimization changed
    active: dict[str, str | int] = field(default_factory=dict)  # the active optimizations, read from the live model
    memory: facts.MemoryPlan | None = None
    gpu: GpuUse | None = None  # of the newest session
    warnings: deque[Fact] = field(default_factory=lambda: deque(maxlen=20))
    problems: deque[Fact] = field(default_factory=lambda: deque(maxlen=20))  # with clips or lines
    problem_count: int = 0
    excluded: int = 0  # clips
    used: dict[str, int] = field(default_factory=dict)  # clips of each list
    samples: list[facts.Sample] = field(default_factory=list)
    step: int = 0
    saved: int = 0  # the newest step that a resume continues after
    latest: facts.Train | None = None  # the newest update
    best: tuple[float, int] | None = None  # evaluation loss and its step
    read: float = 1.0  # share of the log

    def points(self, name: str) -> Points:
        curve = self.curves.get(name)
        return [*curve.points, *curve.waiting[-1:]] if curve else []

    def snapshot(self) -> "RunHistory":
        """Return a copy that does not change while more is read."""
        containers = {name: value for name, value in vars(self).items() if isinstance(value, dict | list | deque)}
        copies: dict[str, Any] = {name: value.copy() for name, value in containers.items()}
        copies["curves"] = {name: curve.copy() for name, curve in self.curves.items()}
        return replace(self, **copies)

    def add(self, event: Event) -> None:
        """Add an event; unknown and damaged ones are ignored."""
        fact = from_json(event)
        match fact:
            case facts.Train():
                self._add_update(fact)
            case facts.Evaluation():
                self._add_evaluation(fact)
            case facts.Scores():
                self._add_points({name: name for name in SCORES}, fact)
            case facts.Resumed():
                self._cut(fact.step)
            case facts.Saved():
                self.saved = fact.step
            case facts.Sample():
                self.samples = [other for other in self.samples if other.file != fact.file] + [fact]
            case _:
                self._add_start(fact)

    def _add_start(self, fact: Fact) -> None:
        match fact:
            case facts.Clips():
                self._add_clips(fact)
            case Optimization():
                self.switches[fact.name] = fact
            case facts.WhatIsOn():
                self.active = fact.parts
            case facts.MemoryPlan() if fact.available:
                self.memory = fact
            case GpuUse():
                self.gpu = fact
            case _:
                self._add_other(fact)

    def _add_other(self, fact: Fact) -> None:
        earlier = fact.name if isinstance(fact, Unrecognised) else ""  # a kind of version 1.1
        if isinstance(fact, Started):
            self.problem_count = 0
            self.latest = None
            self.problems.clear()
        elif isinstance(fact, PROBLEMS) or earlier == "problem":
            self.problem_count += 1
            self.problems.append(fact)
        elif fact.level == "warning" or earlier == "warning":
            self.warnings.append(fact)

    def _add_update(self, fact: facts.Train) -> None:
        if fact.step <= self.step:
            self._cut(fact.step - 1)  # the run was rolled back to a checkpoint
        self.step = fact.step
        self.latest = fact
        self._add_points(TRAIN, fact)

    def _add_evaluation(self, fact: facts.Evaluation) -> None:
        for name in EVALUATION.values():
            if name in self.curves:
                self.curves[name].cut(fact.step - 1)
        self._add_points(EVALUATION, fact)
        if fact.step and is_finite(fact.loss) and (self.best is None or fact.loss < self.best[0]):
            self.best = fact.loss, fact.step

    def _add_points(self, names: dict[str, str], fact: facts.Train | facts.Evaluation | facts.Scores) -> None:
        for name, curve in names.items():
            if is_finite(value := getattr(fact, name)):
                self.curves.setdefault(curve, Curve()).add(fact.step, value)

    def _add_clips(self, fact: facts.Clips) -> None:
        self.used[fact.split] = fact.used
        if fact.split == "train":
            self.excluded = 0  # a resumed run reports it again
        self.excluded += fact.aside

    def _cut(self, last: int) -> None:
        """Remove everything after a step; the run continues from there."""
        self.step = last
        for curve in self.curves.values():
            curve.cut(last)
        if self.best and self.best[1] > last:
            self.best = min([(value, round(step)) for step, value in self.points("eval") if step > 0], default=None)


class EventReader:
    """Reads the events of one run, each time from where it stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.history = RunHistory()
        self.read_at = 0.0  # when the last call ended
        self._skipped, self._parser = 0, LineParser(0)
        self.is_at_end = False  # except for a line that is not written whole

    def read(self, budget: float = BUDGET) -> RunHistory:
        """Read new events until the budget is spent, at least one line."""
        size = tail_offset(self.path, 0)
        if size < self.offset:
            # the file was replaced
            self.offset = 0
            self.history = RunHistory()
            self._parser = LineParser(0)
        deadline = time.monotonic() + budget
        stride = max(1, (size - self.offset) // READ_WHOLE)
        while (more := self._read_block(stride, deadline)) and time.monotonic() < deadline:
            pass
        self.is_at_end = not more
        self.history.read = min(1.0, self.offset / size) if size else 1.0
        self.read_at = time.monotonic()
        return self.history

    def expect(self, lines: int) -> None:
        """Name what is missing at the end of a log that has had this many lines."""
        number = self._parser.number if self.offset else 0
        if number is not None and number < lines:
            self.history.add(to_json(LinesMissing(number, lines + 1)))
            self._parser.skip()  # named once

    def _read_block(self, stride: int, deadline: float) -> bool:
        """Read whole lines of a block until the deadline; tell whether there may be more."""
        block = read_block(self.path, self.offset, BLOCK)
        whole = block.rfind(b"\n")
        if whole < 0:
            if len(block) < BLOCK:
                return False
            whole = BLOCK  # longer than any event
        for line in block[:whole].split(b"\n"):
            self._add_line(line, stride)
            self.offset += len(line) + 1
            if time.monotonic() >= deadline:
                break
        return True

    def _add_line(self, line: bytes, stride: int) -> None:
        if stride > 1 and TRAIN_MARK in line:
            self._skipped += 1
            if self._skipped % stride:
                self._parser.skip()
                return
        for event in self._parser.parse(line):
            self.history.add(event)


class HistoryCache:
    """The histories of recent runs, shared by all visitors."""

    def __init__(self) -> None:
        self._readers: dict[Path, EventReader] = {}  # the least recently read first
        self._lock = threading.Lock()

    def read(self, run: Run) -> RunHistory:
        with self._lock:
            reader = self._readers.pop(run.folder, None) or EventReader(run.events)
            self._readers[run.folder] = reader
            if len(self._readers) > MAX_RUNS:
                del self._readers[next(iter(self._readers))]
            if reader.history.read == 1 or time.monotonic() - reader.read_at > PAUSE_SECONDS:
                lines = run.current_state().lines  # before the events, of which there may be more by now
                reader.read()
                if reader.is_at_end:
                    reader.expect(lines)
            return reader.history.snapshot()
