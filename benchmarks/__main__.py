"""Runs the benchmarks one after another: `python -m benchmarks [--only NAME…] [--list] [--toy] [--device cuda]`.

Each is a program of its own. One that fails does not keep the others from running; it is named at the end.
"""

import argparse
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.programs import BENCHMARKS, Benchmark, of_device
from benchmarks.record import RESULTS
from utils.core.paths import ROOT


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    found = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [one.name for one in BENCHMARKS]
    found.add_argument("--only", nargs="+", choices=names, metavar="NAME", help="only these; --list names them")
    found.add_argument("--list", action="store_true", help="name them and their commands, and run nothing")
    found.add_argument("--toy", action="store_true", help="tiny sizes: shows that all work, and measures nothing")
    found.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="which ones to run (those for the CPU)")
    found.add_argument("--results", type=Path, help="folder for the findings (benchmarks/results; for toys a new one)")
    return found


def chosen(arguments: argparse.Namespace) -> list[Benchmark]:
    """Return the benchmarks to run: those that are named, or all for a device."""
    return [one for one in BENCHMARKS if one.name in arguments.only] if arguments.only else of_device(arguments.device)


def run(benchmark: Benchmark, folder: Path, *, toy: bool) -> int:
    """Run one to its end and return its exit status."""
    program, *words = shlex.split(benchmark.toy if toy else benchmark.words)
    command = [sys.executable, f"benchmarks/{program}", *words, "--results", str(folder)]
    print(f"\n=== {benchmark.name}: {shlex.join(command[1:])}", flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def run_all(benchmarks: Sequence[Benchmark], folder: Path, *, toy: bool) -> int:
    """Run them, go on after one that fails, and return how many did."""
    told, failed = [], 0
    for one in benchmarks:
        began = time.monotonic()
        status = run(one, folder, toy=toy)
        failed += status != 0
        told.append(f"{one.name:16}{f'FAILED with {status}' if status else 'done':18}{time.monotonic() - began:8.0f} s")
    print("\n", "\n".join(told), f"\n\nFindings: {folder}", sep="")
    return failed


def main(words: Sequence[str] | None = None) -> int:
    """List or run the benchmarks; the exit status is 1 when one failed."""
    arguments = parser().parse_args(words)
    benchmarks = chosen(arguments)
    if arguments.list:
        for one in BENCHMARKS:
            print(f"{one.name:16}{one.command}\n{'':16}{one.measures}; against {one.against}")
        return 0
    usual = Path(tempfile.mkdtemp(prefix="benchmarks-toy-")) if arguments.toy else RESULTS
    failed = run_all(benchmarks, (arguments.results or usual).resolve(), toy=arguments.toy)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
