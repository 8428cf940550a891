"""Download a base model; an interrupted download continues."""

import argparse
from pathlib import Path

from utils.cli.runs import add_following, add_output, start_and_follow
from utils.config import DownloadConfig
from utils.config.flags import read_flags
from utils.core.paths import MODELS
from utils.studio.job import Job
from utils.studio.projects import downloads_project
from utils.xtts.hub import accept_licence

CONFIG = DownloadConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser)
    parser.add_argument("--accept-licence", action="store_true", help="accept the licence of the published model")
    add_following(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    if arguments.accept_licence:
        accept_licence()
    config, downloads = read_flags(arguments, CONFIG), downloads_project(arguments.output)
    return start_and_follow("download-model", config, downloads, arguments)


def work(job: Job, config: DownloadConfig) -> None:
    """Download the missing files of the model."""
    from utils.training.preparation import download_progress
    from utils.xtts.base_models import ModelSource, base_folder

    models = Path(config.models) if config.models else MODELS
    folder = base_folder(config.version, source=ModelSource(models, on_progress=download_progress(job)))
    job.events.emit("fetched", version=config.version, folder=str(folder))
