"""Do this program harm for a while: kill it, fill its disk, damage its files; count what is lost, which must be 0."""

import argparse
import secrets
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from utils.core.errors import StorageError
from utils.core.storage import make_folder

MINUTES, INPUTS = 5.0, 12_000
TOLD = 1000  # damaged files between two lines


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take how long, how many damaged files, and the seed of all chance."""
    parser.epilog = "Exit code 1: something was lost. The tables are printed and written to soak.json."
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"of faults (default: {MINUTES:g})")
    parser.add_argument("--fuzz", type=int, default=INPUTS, metavar="N", help=f"damaged files (default: {INPUTS})")
    parser.add_argument(
        "--seed", type=int, default=None, help="repeats the order and the choices of a campaign (default: new ones)"
    )
    parser.add_argument("--output", type=Path, default=None, metavar="DIR", help="(default: a new temporary folder)")


def run(arguments: argparse.Namespace) -> int:
    """Damage files, do faults to trainings, print both tables and write them down."""
    from tests.soak import report, specimens
    from tests.soak.campaign import FAULTS, Count, soak
    from tests.soak.fuzzing import fuzz
    from tests.soak.readers import FORMATS

    seed = secrets.randbelow(1 << 30) if arguments.seed is None else arguments.seed
    folder = _empty(arguments.output or Path(tempfile.mkdtemp(prefix="soak-")))
    print(f"Seed {seed}; everything lies in {folder}", flush=True)
    date = datetime.now().astimezone().strftime("%Y-%m-%d %H:%M")
    fuzzed = fuzz(
        FORMATS, specimens.make(folder / "specimens"), folder / "failures", arguments.fuzz, seed, tell=tell_files
    )
    began = time.monotonic()
    counts = [Count(fault) for fault in FAULTS]
    try:
        soak(folder / "projects", arguments.minutes * 60, seed, counts, FAULTS, lambda line: print(line, flush=True))
    finally:  # Ctrl-C too leaves what was counted
        minutes = (time.monotonic() - began) / 60
        found = report.Report(
            shlex.join(["python", "-m", "tests.soak", *sys.argv[1:]]), seed, date, minutes, counts, fuzzed
        )
        print(report.text(found))
        print(f"Written to {report.write(found, folder)}")
    return int(found.lost > 0)


def _empty(folder: Path) -> Path:
    """Refuse a folder with something in it: whole files to be damaged are added to those of an earlier campaign."""
    make_folder(folder)
    if any(folder.iterdir()):
        raise StorageError(f"{folder} is not empty.", hint="Choose a new folder.")
    return folder.resolve()


def tell_files(done: int) -> None:
    """Print now and then how many damaged files were read."""
    if done % TOLD == 0:
        print(f"{done} damaged files", flush=True)


def main(words: Sequence[str] | None = None) -> int:
    """Run a campaign from the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__, allow_abbrev=False)
    add_arguments(parser)
    return run(parser.parse_args(words))


if __name__ == "__main__":
    sys.exit(main())
