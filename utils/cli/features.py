"""Encode the clips of a dataset for training: audio codes, token ids and reference frames.

Only clips that are not encoded yet are processed, so a stopped run continues where it was.
"""

import argparse
from pathlib import Path

from utils.cli.runs import add_following, add_project, start_and_follow
from utils.config import FeaturesConfig
from utils.config.flags import read_flags
from utils.studio import projects
from utils.studio.facts import UsageError
from utils.studio.job import Job

CONFIG = FeaturesConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_project(parser)
    add_following(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    config = read_flags(arguments, CONFIG)
    if not config.model:
        raise UsageError("no_model")
    model = str(Path(config.model).resolve())  # the run works in another directory
    opened = projects.find(arguments.project, arguments.output)
    return start_and_follow("features", config.model_copy(update={"model": model}), opened, arguments)


def work(job: Job, config: FeaturesConfig) -> None:
    """Encode the missing clips."""
    from utils.dataset import metadata, store
    from utils.training import preparation
    from utils.xtts import pronunciations
    from utils.xtts.codec import AudioEncoder
    from utils.xtts.device import exact_device

    dataset = job.run.project.dataset
    model = Path(config.model)
    clips = store.load_dataset(dataset).kept
    language = metadata.read_language(dataset)
    encoder = AudioEncoder.load(model, exact_device(config.device))
    own = pronunciations.overrides(job.run.project.pronunciations)
    tokenizer = preparation.tokenizer_for(model, language, (clip.text for clip in clips), overrides=own)
    preparation.encode_clips(
        dataset, encoder, tokenizer, clips, language, job.report, job.should_stop, thorough=config.thorough
    )
