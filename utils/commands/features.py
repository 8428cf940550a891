"""Encode the clips of a dataset for training, once: audio codes, token ids and reference frames.

What is there already is kept, so a second run only encodes what is new, and a run that was stopped goes on.
"""

import argparse
from contextlib import closing
from pathlib import Path

from utils.commands.runs import add_project, start_and_follow
from utils.config import FeaturesConfig
from utils.errors import ConfigError
from utils.flags import add_flags, read_flags
from utils.jobs import Job

CONFIG = FeaturesConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take the model that encodes, and the project whose clips it encodes."""
    add_project(parser)
    parser.add_argument("--detach", action="store_true", help="return at once and let it run")
    add_flags(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    """Start the encoding as the page does and follow it."""
    config = read_flags(arguments, CONFIG)
    if not config.model:
        raise ConfigError("No model is named.", hint="Add --model with the folder of a model: it has a dvae.pth.")
    config = config.model_copy(update={"model": str(Path(config.model).resolve())})  # the run works in another folder
    return start_and_follow("features", config, arguments)


def work(job: Job, config: FeaturesConfig) -> None:
    """Encode what is missing, and say at the end how much is there and what is not."""
    from utils.dataset import features, lists, manifest
    from utils.xtts.codes import AudioEncoder, best_device
    from utils.xtts.tokenizer import Tokenizer

    dataset = job.run.folder.parent.parent / "dataset"
    clips, language = manifest.opened(dataset).kept, lists.read_language(dataset)
    encoder = AudioEncoder.load(Path(config.model), best_device(config.device))
    tokenizer = Tokenizer.load(Path(config.model))
    problems = 0
    with closing(features.build(dataset, clips, encoder, tokenizer, language, thorough=config.thorough)) as steps:
        for step in steps:
            for problem in step.problems:
                job.events.emit("problem", message=problem)
            problems += len(step.problems)
            job.events.emit(
                "progress",
                part=step.part,
                step=step.done,
                total=step.total,
                percent=step.percent,
                seconds_left=step.seconds_left,
            )
            job.stop_if_asked(save=steps.close)
    job.events.emit("result", clips=len(clips), problems=problems)
