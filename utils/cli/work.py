"""Do the work of a run (used internally by the page and other commands)."""

import argparse
import contextlib
import importlib
import os
from pathlib import Path

from utils.core.facts import StopRequested
from utils.core.paths import Project
from utils.studio.facts import Status
from utils.studio.job import GroupJob, Job
from utils.studio.runs import Run, serve_queue


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="folder with config.yaml and state.json")
    parser.add_argument("--member", action="store_true", help="this is one of several processes of the run")
    parser.add_argument("--queue", action="store_true", help="start what is queued in this folder of runs")


def run(arguments: argparse.Namespace) -> int:
    """Run the command that is named in the run's state."""
    run = Run(arguments.folder.resolve())
    if arguments.queue:
        serve_queue(Project(run.folder.parent))
        return 0
    command = importlib.import_module(f"utils.cli.{run.read_state().verb.replace('-', '_')}")
    job = GroupJob(run, emits_events=os.environ.get("RANK") == "0") if arguments.member else Job(run)
    # the job has recorded an error; torchrun ends the other members only if this process ends with a traceback
    with contextlib.suppress(StopRequested if arguments.member else Exception), job:
        command.work(job, command.CONFIG.load(run.config))
    return 1 if run.read_state().status is Status.FAILED else 0
