"""Download a base model; an interrupted download continues."""

import argparse
from pathlib import Path

from utils import runs
from utils.cli.runs import follow
from utils.config import DownloadConfig
from utils.config.flags import add_flags, read_flags
from utils.core.paths import MODELS, OUTPUT
from utils.runs.job import Job
from utils.workspace.projects import downloads_project
from utils.xtts.hub import accept_licence

CONFIG = DownloadConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder with the projects (default: output/)")
    parser.add_argument("--accept-licence", action="store_true", help="accept the licence of the published model")
    parser.add_argument("--detach", action="store_true", help="return immediately; the run continues in the background")
    add_flags(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    """Start the download as a run and follow it."""
    if arguments.accept_licence:
        accept_licence()
    started = runs.start("download-model", read_flags(arguments, CONFIG), downloads_project(arguments.output))
    print(f"{started.name} is running in {started.folder}", flush=True)
    return 0 if arguments.detach else follow(started)


def work(job: Job, config: DownloadConfig) -> None:
    """Download the missing files of the model."""
    from utils.training.preparation import download_progress
    from utils.xtts.base_models import ModelSource, base_folder

    models = Path(config.models) if config.models else MODELS
    folder = base_folder(config.version, source=ModelSource(models, on_progress=download_progress(job)))
    job.events.emit("fetched", version=config.version, folder=str(folder))
