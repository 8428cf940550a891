"""The results of a campaign, as tables and as soak.json."""

import dataclasses
import json
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.soak.campaign import Count
from tests.soak.fuzzing import Fuzzed
from utils.core.storage import write_atomically

FILE = "soak.json"


@dataclass(frozen=True)
class Report:
    """A campaign.

    Attributes:
        command: What was called.
        seed: Of every chance.
        date: When it began.
        minutes: How long the faults were done.
        counts: What came of the faults.
        fuzzed: What came of damaged files.
    """

    command: str
    seed: int
    date: str
    minutes: float
    counts: Sequence[Count]
    fuzzed: Fuzzed

    @property
    def lost(self) -> int:
        """Return how many losses there were, damaged files that were neither read nor refused among them."""
        return sum(count.lost for count in self.counts) + len(self.fuzzed.failures)


def machine() -> str:
    """Describe this machine in a few words."""
    cores, memory = psutil.cpu_count(), psutil.virtual_memory().total / 2**30
    return (
        f"{platform.system()} {platform.machine()}, {cores} cores, {memory:.0f} GiB, Python {platform.python_version()}"
    )


def write(report: Report, folder: Path) -> Path:
    """Write soak.json."""
    told = {**dataclasses.asdict(report), "lost": report.lost, "machine": machine()}
    write_atomically(folder / FILE, json.dumps(told, ensure_ascii=False, indent=1))
    return folder / FILE


def text(report: Report) -> str:
    """Write both tables."""
    faults = [[count.fault, count.injected, count.survived, count.lost] for count in report.counts if not count.skipped]
    files = [
        [one.name, one.inputs, one.read, one.refused, one.without_hint, one.failed, f"{one.slowest:.2f} s"]
        for one in report.fuzzed.tallies
    ]
    skipped = [f"Skipped: {count.fault}: {count.skipped}" for count in report.counts if count.skipped]
    losses = [f"LOST: {count.fault}: {loss}" for count in report.counts for loss in count.losses]
    failures = [f"FAILED: {one.file} ({', '.join(one.done)}): {_last(one.said)}" for one in report.fuzzed.failures]
    parts = [
        f"`{report.command}`, seed {report.seed}, {report.date}, {machine()}",
        _table(["fault", "injected", "survived", "lost"], faults),
        _table(["damaged files", "inputs", "read all the same", "refused", "no cure", "failed", "slowest"], files),
        "\n".join([*skipped, *losses, *failures]),
        f"{report.minutes:.1f} minutes, {report.fuzzed.inputs} damaged files, {report.lost} lost.",
    ]
    return "\n\n".join(part for part in parts if part)


def _table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Write a Markdown table with the sum of each column that counts."""
    if not rows:
        return ""
    numbers = [[cell for cell in column if isinstance(cell, int)] for column in zip(*rows, strict=True)]
    sums = [sum(column) if len(column) == len(rows) else "" for column in numbers]
    return "\n".join(map(_line, [header, ["---", *["---:"] * (len(header) - 1)], *rows, ["in all", *sums[1:]]]))


def _line(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _last(said: str) -> str:
    return (said.strip().splitlines() or [""])[-1]
