"""Download a base model; an interrupted download continues."""

import argparse
from dataclasses import replace
from pathlib import Path

from utils.cli.runs import add_following, add_output, start_and_follow
from utils.config import DownloadConfig
from utils.config.flags import read_flags
from utils.studio.job import Job
from utils.studio.models import model_source
from utils.studio.projects import downloads_project
from utils.xtts.facts import BaseModelReady

CONFIG = DownloadConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_output(parser)
    parser.add_argument("--accept-licence", action="store_true", help="accept the licence of the published model")
    add_following(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    from utils.studio.downloads import give_consent, require_consent

    config = read_flags(arguments, CONFIG)
    if arguments.accept_licence:
        give_consent()
    require_consent(config.version)
    return start_and_follow("download-model", config, downloads_project(arguments.output), arguments)


def work(job: Job, config: DownloadConfig) -> None:
    """Download the missing files of the model."""
    from utils.xtts.base_models import base_folder

    source = model_source(job.report, job.should_stop)
    if config.models:
        source = replace(source, models=Path(config.models))
    job.report(BaseModelReady(config.version, base_folder(config.version, source)))
