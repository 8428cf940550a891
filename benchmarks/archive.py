"""The result files: what was found, on which machine, when, and with which versions."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.programs import Benchmark
from benchmarks.record import RESULTS

NOT_RECORDED = "not recorded"  # files from before November 22, 2026 lack some of their surroundings


@dataclass(frozen=True)
class Finding:
    """One result file; its name ends with the machine and the date.

    Attributes:
        path: Where it lies.
        data: What it holds.
    """

    path: Path
    data: dict[str, Any]

    @property
    def benchmark(self) -> str:
        """Return how its name begins: the program, its size and what was special."""
        return self.path.stem.rsplit("_", 2)[0]

    @property
    def machine(self) -> str:
        """Return the machine as its name tells it."""
        return self.path.stem.rsplit("_", 2)[1]

    @property
    def date(self) -> str:
        """Return the date in its name."""
        return self.path.stem.rsplit("_", 2)[2]

    @property
    def device(self) -> str:
        """Return where was computed."""
        plan: dict[str, str] = self.data.get("plan", {})
        return str(self.data.get("device") or plan.get("device", "cpu"))

    @property
    def page(self) -> str:
        """Return the name of the page that tells everything."""
        return self.path.with_suffix(".md").name

    def told(self, what: str) -> str:
        """Return a part of the surroundings, or that nobody wrote it down."""
        return str(self.data.get(what, NOT_RECORDED))


def findings(folder: Path = RESULTS) -> list[Finding]:
    """Read every result file, the oldest first."""
    every = [Finding(path, json.loads(path.read_text(encoding="utf-8"))) for path in sorted(folder.glob("*.json"))]
    return sorted(every, key=lambda one: one.date)


def of(benchmark: Benchmark, every: Sequence[Finding]) -> list[Finding]:
    """Return the last finding of a benchmark on each machine, the newest first."""
    fitting = [one for one in every if (one.benchmark, one.device) == (benchmark.finding, benchmark.device)]
    return sorted({one.machine: one for one in fitting}.values(), key=lambda one: one.date, reverse=True)
