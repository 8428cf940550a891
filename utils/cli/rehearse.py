"""Do a test run without training, to check that start, watch, stop and resume work on this machine."""

import argparse
import functools
import time

from utils.cli.runs import add_following, add_project, start_and_follow
from utils.config import RehearsalConfig
from utils.config.flags import read_flags
from utils.core.events import iter_events
from utils.core.paths import project
from utils.studio.job import Job

CONFIG = RehearsalConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    add_following(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    opened = project(arguments.project, arguments.output)
    return start_and_follow("rehearse", read_flags(arguments, CONFIG), opened, arguments)


def work(job: Job, config: RehearsalConfig) -> None:
    """Count until the time is over; a resumed run continues its count."""
    total = max(1, round(config.seconds * config.ticks_per_second))
    steps = [event.get("step") for event in iter_events(job.run.events) if event["kind"] == "progress"]
    done = max((step for step in steps if isinstance(step, int)), default=0)
    for step in range(done + 1, total + 1):
        job.stop_if_requested(save=functools.partial(job.events.emit, "saved", step=step - 1))
        time.sleep(1 / config.ticks_per_second)
        job.events.emit("progress", step=step, total=total)
