"""Do the work of a run (used internally by the page and other commands)."""

import argparse
import contextlib
import importlib
import os
from pathlib import Path

from utils.core.facts import StopRequested
from utils.core.processes import spawn
from utils.studio.job import GroupJob, Job
from utils.studio.runs import Run, Status, queued_runs, start_next


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="folder with config.yaml and state.json")
    parser.add_argument("--member", action="store_true", help="this is one of several processes of the run")
    parser.add_argument("--next", action="store_true", help="start the run that waits for this one to end")


def run(arguments: argparse.Namespace) -> int:
    """Run the command that is named in the run's state."""
    run = Run(arguments.folder.resolve())
    if arguments.next:
        start_next(run.project, run.verb)
        return 0
    command = importlib.import_module(f"utils.cli.{run.read_state().verb.replace('-', '_')}")
    job = GroupJob(run, emits_events=os.environ.get("RANK") == "0") if arguments.member else Job(run)
    # the job has recorded an error; torchrun ends the other members only if this process ends with a traceback
    with contextlib.suppress(StopRequested if arguments.member else Exception), job:
        command.work(job, command.CONFIG.load(run.config))
    if not arguments.member and queued_runs(run.project, run.verb):
        # in a process of its own, which outlives this one: whoever stops this run ends its children too
        spawn(["-m", "utils", "work", str(run.folder), "--next"], new_session=True)
    return 1 if run.read_state().status is Status.FAILED else 0
