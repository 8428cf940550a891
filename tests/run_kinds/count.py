"""A run that counts for some seconds and can be stopped, saved and resumed, in place of a training."""

import argparse
import time

from utils.cli.runs import add_following, add_project, start_and_follow
from utils.config.base import Config, setting
from utils.config.flags import read_flags
from utils.core.events import iter_events
from utils.core.facts import Stop, raise_if_stopped
from utils.studio.job import Job
from utils.studio.paths import project


class CountConfig(Config):
    """How long to count."""

    seconds: float = setting(20.0, "Seconds", "Length of the run.", ge=0.1, le=86_400)
    ticks_per_second: float = setting(2.0, "Ticks per second", "Events written per second.", gt=0, le=100)


CONFIG = CountConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    add_following(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    opened = project(arguments.project, arguments.output)
    return start_and_follow("count", read_flags(arguments, CONFIG), opened, arguments)


def work(job: Job, config: CountConfig) -> None:
    """Count until the time is over; a resumed run continues its count."""
    total = max(1, round(config.seconds * config.ticks_per_second))
    steps = [event.get("step") for event in iter_events(job.run.events) if event["kind"] == "progress"]
    done = max((step for step in steps if isinstance(step, int)), default=0)
    for step in range(done + 1, total + 1):
        if job.should_stop() is Stop.SAVE:
            job.events.emit("saved", step=step - 1)
        raise_if_stopped(job.should_stop)
        time.sleep(1 / config.ticks_per_second)
        job.events.emit("train", step=step)
        job.events.emit("progress", step=step, total=total)
