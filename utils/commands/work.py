"""Do the work of a run folder; the page and the other commands call this."""

import argparse
import importlib
from pathlib import Path

from utils.jobs import Job
from utils.runs import Run, Status


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the folder of the run."""
    parser.add_argument("folder", type=Path, help="folder with config.yaml and state.json")


def run(arguments: argparse.Namespace) -> int:
    """Find the verb in the run's state and let it work."""
    place = Run(arguments.folder.resolve())
    verb = importlib.import_module(f"utils.commands.{place.read_state().verb.replace('-', '_')}")
    with Job(place) as job:
        verb.work(job, verb.CONFIG.load(place.config))
    return 1 if place.read_state().status is Status.FAILED else 0
