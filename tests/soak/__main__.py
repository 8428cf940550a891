"""Inject faults for a while: kill processes, fill disks, damage files; count what is lost, which must be 0."""

import argparse
import dataclasses
import json
import platform
import secrets
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import psutil

from tests.soak import campaign, fuzzing, readers, specimens
from tests.soak.campaign import FaultCount
from tests.soak.fuzzing import Tally
from utils.core.errors import StorageError
from utils.core.storage import make_folder, write_atomically

FILE = "soak.json"


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
    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")
    machine = f"{platform.system()} {platform.machine()}, {psutil.cpu_count()} cores"
    machine += f", {psutil.virtual_memory().total / 2**30:.0f} GiB, Python {platform.python_version()}"
    originals = specimens.write_all(folder / "specimens")
    fuzzed = fuzzing.fuzz(readers.FORMATS, originals, folder / "failures", arguments.fuzz, seed, print_count)
    began = time.monotonic()
    counts = [FaultCount(fault) for fault in campaign.FAULTS]
    try:
        campaign.soak(folder / "projects", arguments.minutes * 60, seed, counts, campaign.FAULTS, print_line)
    finally:  # the counts are reported even after Ctrl-C
        lost = sum(count.lost for count in counts) + sum(tally.failed for tally in fuzzed)
        minutes = (time.monotonic() - began) / 60
        report = {
            "command": command,
            "seed": seed,
            "date": date,
            "machine": machine,
            "lost": lost,
            "minutes": minutes,
            "counts": [dataclasses.asdict(count) for count in counts],
            "fuzzed": [dataclasses.asdict(tally) for tally in fuzzed],
        }
        write_atomically(folder / FILE, json.dumps(report, ensure_ascii=False, indent=1))
        print_line(f"`{command}`, seed {seed}, {date}, {machine}\n\n{tables(counts, fuzzed)}\n")
        print_line(f"{minutes:.1f} minutes, {sum(tally.inputs for tally in fuzzed)} damaged files, {lost} lost.")
        print_line(f"Written to {folder / FILE}")
    return int(lost > 0)


def print_line(line: str) -> None:
    print(line, flush=True)


def print_count(done: int) -> None:
    if done % 1000 == 0:
        print_line(f"{done} damaged files")


def tables(counts: Sequence[FaultCount], fuzzed: Sequence[Tally]) -> str:
    """Format both tables and every loss as Markdown."""
    faults = [[count.fault, count.injected, count.survived, count.lost] for count in counts if not count.skipped]
    files = [[*dataclasses.astuple(tally)[:6], f"{tally.slowest:.2f} s"] for tally in fuzzed]
    lines = [f"Skipped: {count.fault}: {count.skipped}" for count in counts if count.skipped]
    lines += [f"LOST: {count.fault}: {loss}" for count in counts for loss in count.losses]
    lines += [f"FAILED: {failure.strip()}" for tally in fuzzed for failure in tally.failures]
    parts = [
        table(["fault", "injected", "survived", "lost"], faults),
        table(["damaged files", "inputs", "read anyway", "refused", "no hint", "failed", "slowest"], files),
        "\n".join(lines),
    ]
    return "\n\n".join(filter(None, parts))


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Format a Markdown table with the totals of all columns of numbers."""
    if not rows:
        return ""
    numbers = [[cell for cell in column if isinstance(cell, int)] for column in zip(*rows, strict=True)]
    totals = [sum(column) if len(column) == len(rows) else "" for column in numbers]
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows, ["total", *totals[1:]]]
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


if __name__ == "__main__":
    sys.exit(main())
