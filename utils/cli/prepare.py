"""Turn recordings into clips with text: segment, transcribe, filter, and report the audio usage.

Only new recordings are processed, so a stopped run continues where it was. To segment the same recordings differently,
use another project.
"""

import argparse
import importlib.util
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from utils.cli.runs import add_following, add_project, start_and_follow
from utils.config import SEPARATOR, DatasetConfig
from utils.config.flags import read_flags
from utils.core.addresses import is_url
from utils.core.errors import ConfigError, DataError
from utils.core.paths import project
from utils.dataset import build, sources, statistics
from utils.dataset.corpora import CORPUS, HUB, note_corpus
from utils.dataset.download import INSTALL, Access
from utils.dataset.pipeline import needs_transcription
from utils.dataset.store import Store
from utils.recognition.recognisers import Recogniser
from utils.recognition.recognisers.choice import Kind
from utils.recognition.recognisers.isolated import open_recogniser
from utils.studio.job import Job
from utils.system import packages

CONFIG = DatasetConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("recordings", nargs="*", metavar="RECORDING", help="file, folder or URL; instead of --inputs")
    add_project(parser)
    add_following(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    config = read_flags(arguments, CONFIG)
    recordings = list(dict.fromkeys([*arguments.recordings, *config.input_list()]))
    if not recordings:
        raise ConfigError("No recordings are given.", hint="Usage: python -m utils prepare FILE_OR_FOLDER ...")
    if invalid := [name for name in recordings if SEPARATOR in name]:
        raise ConfigError(f"{invalid[0]!r} has a | in its name.", hint="Rename it, or give its folder.")
    if any(map(is_url, recordings)):
        _offer_package("yt_dlp", "yt-dlp")
    cookies = str(Path(config.cookies).expanduser().resolve()) if config.cookies else ""
    config = config.model_copy(update={"inputs": SEPARATOR.join(map(_absolute, recordings)), "cookies": cookies})
    return start_and_follow("prepare", config, project(arguments.project, arguments.output), arguments)


def _offer_package(module: str, package: str) -> None:
    """Ask a person at a terminal whether to install an optional package that is missing."""
    if importlib.util.find_spec(module):
        return
    question = f"Links need the package {package}, which is not installed. Install it now? [y/N] "
    if not sys.stdin.isatty() or input(question).strip().lower() not in {"y", "yes"}:
        raise ConfigError(f"Links need the package {package}, which is not installed.", hint=INSTALL)
    packages.install(package)


def _absolute(recording: str) -> str:
    """Make a path absolute, because the run works in another directory."""
    is_remote = "://" in recording or recording.startswith((HUB, CORPUS))
    return recording if is_remote else str(Path(recording).expanduser().resolve())


def work(job: Job, config: DatasetConfig) -> None:
    """Find the recordings and create their clips."""

    def report_download(name: str, share: float) -> None:
        job.stop_if_requested()
        job.events.emit("fetched", name=name, percent=round(100 * share))

    project = job.run.project
    names = list(dict.fromkeys(config.input_list()))
    for name in (name for name in names if name.startswith((HUB, CORPUS))):
        corpus = note_corpus(name, project.dataset)
        about = f"{corpus.title}: {corpus.size or 'size unknown'}, licence {corpus.licence}"
        job.events.emit("warning", message=f"{about}. {corpus.note}".strip())
    scan = sources.find_recordings(
        names,
        language=config.language,
        speaker=config.speaker,
        workspace=project.recordings,
        on_progress=report_download,
        access=Access(config.cookies, config.proxy),
        hours=config.hours,
    )
    if not scan.recordings:
        reasons = "; ".join(f"{problem.path}: {problem.sentence}" for problem in scan.problems[:5])
        raise DataError(f"There is nothing to prepare. {reasons}", hint="Give audio or video files, or their folder.")
    job.events.emit("found", recordings=len(scan.recordings), problems=len(scan.problems))

    def warn(message: str) -> None:
        job.events.emit("warning", message=message)

    with ExitStack() as stack:

        def recogniser(kind: Kind, model: str) -> Recogniser:
            options: dict[str, Any] = {"device": config.device, "compute_type": config.compute_type}
            return stack.enter_context(open_recogniser(model, config.language, warn, kind=kind, **options))

        first = second = None
        if config.recogniser != "none" and any(map(needs_transcription, scan.recordings)):
            first = recogniser(config.recogniser, config.recogniser_model)
            second = recogniser("auto", config.second_model) if config.second_model else None
        report = build.build(
            scan,
            project,
            config,
            job.events.emit,
            recogniser=first,
            second=second,
            check_stop=job.stop_if_requested,  # finished recordings are stored
        )
    contents = report.contents
    job.events.emit("ledger", message=statistics.account(contents).render())
    job.events.emit("split", **statistics.split_counts(Store(project.dataset)), message=report.note)
    job.events.emit("prepared", added=report.added, known=report.known, bad=len(report.bad), clips=len(contents.kept))
