"""Turn recordings into clips with text: segment, transcribe, filter, and report the audio usage.

Only new recordings are processed, so a stopped run continues where it was. To segment the same recordings differently,
use another project.
"""

import argparse
import importlib.util
import sys

from utils.cli.runs import add_following, add_project, chosen_project, start_and_follow
from utils.config import SEPARATOR, DatasetConfig
from utils.config.flags import read_flags
from utils.core import integrations
from utils.core.addresses import is_url
from utils.core.facts import raise_if_stopped
from utils.core.paths import expand_home
from utils.dataset import sources
from utils.dataset.clip import ScanResult
from utils.dataset.errors import NothingFoundError
from utils.dataset.facts import CorpusUsed, Fetched, Found
from utils.dataset.prepare import prepare
from utils.dataset.readers.collection import hold_back
from utils.dataset.readers.facts import NoClipsError
from utils.dataset.sources import Access, is_corpus
from utils.dataset.statistics import account
from utils.studio.facts import UsageError
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
        raise UsageError("no_recordings")
    if invalid := [name for name in recordings if SEPARATOR in name]:
        raise UsageError("separator_in_name", invalid[0])
    if any(map(is_url, recordings)):
        _offer_package("yt_dlp", "yt-dlp")
    if config.engine == "ray":
        _offer_package("ray", "ray")
    cookies = str(expand_home(config.cookies).resolve()) if config.cookies else ""
    config = config.model_copy(update={"inputs": SEPARATOR.join(map(_absolute, recordings)), "cookies": cookies})
    opened = chosen_project(arguments)
    if not opened.root.exists():
        sources.require_any(config.input_list())
    return start_and_follow("prepare", config, opened, arguments)


def _offer_package(module: str, package: str) -> None:
    """Ask a person at a terminal whether to install an optional package that is missing."""
    if importlib.util.find_spec(module):
        return
    question = f"This needs the package {package}, which is not installed. Install it now? [y/N] "
    if not sys.stdin.isatty() or input(question).strip().lower() not in {"y", "yes"}:
        raise UsageError("no_package", package)
    packages.install(package)


def _absolute(recording: str) -> str:
    """Make a path absolute, because the run works in another directory."""
    return recording if "://" in recording or is_corpus(recording) else str(expand_home(recording).resolve())


def find(job: Job, config: DatasetConfig) -> ScanResult:
    """Find the recordings; links and corpora are downloaded."""

    def report_download(name: str, share: float) -> None:
        raise_if_stopped(job.should_stop)
        job.report(Fetched(name, round(100 * share)))

    project = job.run.project
    names = list(dict.fromkeys(config.input_list()))
    for name in filter(is_corpus, names):
        corpus = integrations.require("note_corpus")(name, project.dataset)
        job.report(CorpusUsed(corpus.title, corpus.size or "?", corpus.licence, corpus.note))
    scan = sources.find_recordings(
        names,
        language=config.language,
        speaker=config.speaker,
        workspace=project.recordings,
        on_progress=report_download,
        access=Access(config.cookies, config.proxy),
        hours=config.hours,
        columns=config.columns,
    )
    for note in scan.notes:
        job.report(note)
    return scan if config.replace_texts else hold_back(scan)


def work(job: Job, config: DatasetConfig) -> None:
    """Find the recordings and create their clips."""
    project = job.run.project
    scan = find(job, config)
    if not scan.recordings:
        raise NothingFoundError(scan.problems[:5])
    job.report(Found(len(scan.recordings), len(scan.problems)))
    contents = prepare(
        scan.recordings,
        project.dataset,
        config,
        job.report,
        job.should_stop,  # finished recordings are stored
        problems=scan.problems,
        pronunciations=project.pronunciations,
    )
    if not contents.kept:
        raise NoClipsError(project.argument, account(contents).total.excluded)
