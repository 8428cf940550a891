"""Fine-tune a model on the clips of a project."""

import argparse
import contextlib
import os
import sys
from pathlib import Path

from utils.cli.runs import add_following, add_output, start_and_follow
from utils.config import TrainConfig
from utils.config.base import SEPARATOR
from utils.config.flags import command_line, read_flags
from utils.core.events import read_events
from utils.core.facts import StopRequested, from_json
from utils.studio import projects, runs, training_checks
from utils.studio.facts import Failed, UsageError
from utils.studio.job import GroupJob, Job
from utils.studio.paths import OUTPUT, Project, project, project_of
from utils.studio.runs import Run
from utils.training.errors import TrainingError
from utils.training.launcher import is_member, launch

CONFIG = TrainConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", default="", help="name of the project (default: default)")
    add_output(parser)
    parser.add_argument("--show", action="store_true", help="print the effective settings and the command, then exit")
    parser.add_argument(
        "--accept-licence", action="store_true", help="accept the licence of the published model, once for all runs"
    )
    add_following(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    """Start the run and follow it; under torchrun, join the other processes."""
    is_named = arguments.project or arguments.output != OUTPUT
    if is_named and hasattr(arguments, "output_path"):
        raise UsageError("two_flags", "--output-path", "--project/--output")
    config = read_flags(arguments, CONFIG)
    is_new = bool(config.train_csv) or arguments.show  # shown settings need no project
    find = projects.find if arguments.project and not is_new else project
    opened = find(arguments.project or "default", arguments.output) if is_named else project_of(config)
    config = complete(config, opened)
    if arguments.show:
        sys.stdout.write(f"# {command_line('train', config)}\n{config.to_yaml()}")
        return 0
    if arguments.accept_licence:
        from utils.studio.downloads import give_consent

        give_consent()
    training_checks.require_ready(config)
    if "RANK" in os.environ:
        return join(config)
    return start_and_follow("train", config, opened, arguments)


def complete(config: TrainConfig, opened: Project) -> TrainConfig:
    """Name the project and make paths absolute, because the run works in another directory."""
    paths = {"output_path": str(opened.root.resolve())}
    for field in ("custom_model", "train_csv", "eval_csv"):
        if named := getattr(config, field):
            paths[field] = str(Path(named).resolve())
    weights = config.replay_weights.items()
    paths["replay_data"] = SEPARATOR.join(f"{folder.resolve()}={weight:g}" for folder, weight in weights)
    return config.model_copy(update=paths)


def join(config: TrainConfig) -> int:
    """Work as one of the processes started by torchrun or accelerate launch."""
    from utils.training.distribution import from_first

    run = Run(Path(from_first(lambda: str(runs.create("train", config, project_of(config)).folder))))
    is_first = os.environ["RANK"] == "0"
    job = Job(run) if is_first else GroupJob(run, emits_events=False)
    with contextlib.suppress(Exception if is_first else StopRequested), job:  # the job has recorded how it ended
        work(job, config)
    return 1 if run.read_state().status == "failed" else 0


def work(job: Job, config: TrainConfig) -> None:
    """Train in this process, or start several processes and watch them."""
    if config.num_processes > 1 and not is_member():
        offset = job.run.events.stat().st_size
        member = ["utils", "work", str(job.run.folder), "--member"]
        if code := launch(member, config.num_processes, job.should_stop, config.device):
            facts = map(from_json, read_events(job.run.events, offset).events)
            causes = [fact.error for fact in facts if isinstance(fact, Failed)]
            raise causes[0] if causes else TrainingError("process_ended", code)
        return
    from utils import gpt_train
    from utils.training.speedups.gpu import allocator_environment

    for name, value in allocator_environment().items():  # read when CUDA starts, which is later
        os.environ.setdefault(name, value)
    gpt_train.train(config, job.run, job.report, job.should_stop)
