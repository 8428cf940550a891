"""Inject faults for a while: kill processes, fill disks, damage files; count what is lost, which must be 0."""

import argparse
import contextlib
import json
import random
import secrets
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from benchmarks import record
from tests.soak import faults, formats, fuzzing
from tests.soak.mounting import NotHere
from tests.soak.subject import Subject, wait_for
from utils.core.errors import StorageError
from utils.core.storage import make_folder, write_atomically

FILE = "soak.json"


@dataclass
class FaultCount:
    """The outcome of one kind of fault."""

    fault: str
    injected: int = 0
    survived: int = 0  # nothing was lost
    losses: list[str] = field(default_factory=list)
    skipped: str = ""  # why it is impossible on this machine; empty when it is possible

    def lose(self, subject: Subject, error: Exception) -> None:
        self.losses.append(f"LOST: {self.fault}: {subject.project.root}: {type(error).__name__}: {error}")


def main(words: Sequence[str] | None = None) -> int:
    """Damage files, inject faults into training runs, print both tables and write them to soak.json."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__, allow_abbrev=False)
    parser.epilog = "Exit code 1: something was lost. The tables are printed and written to soak.json."
    parser.add_argument("--minutes", type=float, default=5.0, help="of faults (default: 5)")
    parser.add_argument("--fuzz", type=int, default=12_000, metavar="N", help="damaged files (default: 12000)")
    parser.add_argument("--seed", type=int, help="repeats the order and the choices of a campaign (default: new ones)")
    parser.add_argument("--output", type=Path, metavar="DIR", help="a new folder (default: a temporary one)")
    arguments = parser.parse_args(words)

    seed = secrets.randbelow(1 << 30) if arguments.seed is None else arguments.seed
    folder: Path = (arguments.output or Path(tempfile.mkdtemp(prefix="soak-"))).resolve()
    make_folder(folder)
    if any(folder.iterdir()):  # intact files would be mixed with those of an earlier campaign
        raise StorageError(f"{folder} is not empty.", hint="Choose a new folder.")
    print_line(f"Seed {seed}; all files are in {folder}")
    command = shlex.join(["python", "-m", "tests.soak", *(sys.argv[1:] if words is None else words)])
    report: dict[str, object] = {"command": command, "seed": seed, "date": record.today()}
    report |= {"hardware": record.hardware("cpu"), "software": record.software()}
    formats.write_specimens(folder / "specimens")
    fuzzed = fuzzing.fuzz(folder / "specimens", folder / "failures", arguments.fuzz, seed, print_line)
    began = time.monotonic()
    counts = [FaultCount(fault) for fault in faults.FAULTS]
    try:
        inject_faults(folder / "projects", arguments.minutes * 60, seed, counts)
    finally:  # the counts are reported even after Ctrl-C
        lost = sum(len(count.losses) for count in counts) + sum(tally.failed for tally in fuzzed)
        minutes = round((time.monotonic() - began) / 60, 1)
        summary = {"minutes": minutes, "damaged files": sum(tally.inputs for tally in fuzzed), "lost": lost}
        tables = {"counts": [asdict(count) for count in counts], "fuzzed": [asdict(tally) for tally in fuzzed]}
        write_atomically(folder / FILE, json.dumps(report | summary | tables, ensure_ascii=False, indent=1))
        rows = [[count.fault, count.injected, count.survived, len(count.losses), count.skipped] for count in counts]
        print_table(["fault", "injected", "survived", "lost", "skipped because"], rows)
        files = ["damaged files", "inputs", "read anyway", "refused", "no hint", "failed", "slowest (s)"]
        print_table(files, [list(asdict(tally).values())[:-1] for tally in fuzzed])
        for losses in [*(count.losses for count in counts), *(tally.losses for tally in fuzzed)]:
            for loss in losses:
                print_line(loss)
        for name, value in (report | summary).items():
            print_line(f"{name}: {value}")
        print_line(f"Written to {folder / FILE}")
    return int(lost > 0)


def print_line(line: str) -> None:
    print(line, flush=True)


def print_table(header: list[str], rows: list[list[object]]) -> None:
    print_line(record.table(header, [list(map(str, row)) for row in rows]))


def inject_faults(folder: Path, seconds: float, seed: int, counts: Sequence[FaultCount]) -> None:
    """Inject faults in random order until the time is over; the last one is finished.

    The counts are filled on the way, so that they are complete whatever ends the campaign.
    """
    make_folder(folder)
    deadline = time.monotonic() + seconds
    rng, number = random.Random(seed), 0
    order: list[FaultCount] = []
    subject: Subject | None = None
    try:
        while time.monotonic() < deadline and not all(count.skipped for count in counts):
            order = order or rng.sample(counts, len(counts))
            if (count := order.pop(0)).skipped:
                continue
            subject = subject or Subject(folder / f"project-{number}")
            number += 1
            if not survives(count, subject, random.Random(f"{seed}/{count.fault}/{count.injected}")):
                close(subject, count)
                subject = None  # what is left of it would spoil the next faults
            print_line(count.skipped or f"{count.fault}: {count.injected} injected, {len(count.losses)} lost")
    finally:
        if subject is not None:
            close(subject, count)


def survives(count: FaultCount, subject: Subject, rng: random.Random) -> bool:
    """Inject a fault and count it; tell whether the project can be used for the next one."""
    try:
        faults.inject(count.fault, subject, rng)
        wait_for(lambda: not has_zombies(), lambda: "zombies are left", patience=10.0)
    except NotHere as reason:
        count.skipped = str(reason)
        return True
    except Exception as error:  # noqa: BLE001  # any error is what this campaign looks for
        count.injected += 1
        count.lose(subject, error)
        return False
    count.injected += 1
    count.survived += 1
    return True


def close(subject: Subject, count: FaultCount) -> None:
    try:
        subject.close()
    except Exception as error:  # noqa: BLE001  # a run that cannot be stopped is a finding too
        count.lose(subject, error)


def has_zombies() -> bool:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
    return False


if __name__ == "__main__":
    sys.exit(main())
