"""Encode the clips of a dataset for training: audio codes, token ids and reference frames.

Only clips that are not encoded yet are processed, so a stopped run continues where it was.
"""

import argparse
from pathlib import Path

from utils.cli.runs import add_project, start_and_follow
from utils.config import FeaturesConfig
from utils.config.flags import add_flags, read_flags
from utils.core.errors import ConfigError
from utils.runs.job import Job

CONFIG = FeaturesConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_project(parser)
    parser.add_argument("--detach", action="store_true", help="return immediately; the run continues in the background")
    add_flags(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    """Start the run and follow it."""
    config = read_flags(arguments, CONFIG)
    if not config.model:
        raise ConfigError("No model is given.", hint="Add --model with a folder with dvae.pth.")
    config = config.model_copy(
        update={"model": str(Path(config.model).resolve())}
    )  # the run works in another directory
    return start_and_follow("features", config, arguments)


def work(job: Job, config: FeaturesConfig) -> None:
    """Encode the missing clips."""
    from utils.dataset import metadata, store
    from utils.training import preparation
    from utils.xtts.codec import AudioEncoder
    from utils.xtts.device import choose_device

    dataset, model = job.run.project.dataset, Path(config.model)
    clips, language = store.load_dataset(dataset).kept, metadata.read_language(dataset)
    encoder = AudioEncoder.load(model, choose_device(config.device))
    reading = preparation.tokenizer_for(model, language, (clip.text for clip in clips))
    preparation.encode_clips(job, dataset, encoder, reading, clips, language, thorough=config.thorough)
