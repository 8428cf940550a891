"""Do the work of a run (used internally by the page and other commands)."""

import argparse
import contextlib
import importlib
import os
import shlex
from pathlib import Path
from types import ModuleType

from utils.config import read_yaml
from utils.config.flags import with_hyphens
from utils.core.facts import StopRequested
from utils.studio.command_runs import CommandConfig
from utils.studio.facts import CommandFailedError
from utils.studio.job import GroupJob, Job
from utils.studio.paths import Project
from utils.studio.queue import serve_queue
from utils.studio.runs import Run


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
        if "arguments" in read_yaml(run.config):
            perform(command, CommandConfig.load_own(run.config), job)
        else:
            command.work(job, command.CONFIG.load_own(run.config))
    return 1 if run.read_state().status == "failed" else 0


def perform(command: ModuleType, config: CommandConfig, job: Job) -> None:
    """Run a command that the page started; what it prints is in the log of the run."""
    parser = argparse.ArgumentParser(exit_on_error=False, allow_abbrev=False)
    command.add_arguments(parser)
    arguments = parser.parse_args(with_hyphens(shlex.split(config.arguments)))
    reports = hasattr(command, "perform")
    if code := command.perform(arguments, job.report, job.should_stop) if reports else command.run(arguments):
        raise CommandFailedError(code, job.run.log)
