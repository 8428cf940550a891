"""Turn recordings into clips with text: segment, transcribe, filter, and report the audio usage.

Only new recordings are processed, so a stopped run continues where it was. To segment the same recordings differently,
use another project.
"""

import argparse
import functools
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from utils.cli.runs import add_project, start_and_follow
from utils.config import SEPARATOR, DatasetConfig
from utils.config.flags import add_flags, read_flags
from utils.core.errors import ConfigError, DataError
from utils.runs.job import Job

if TYPE_CHECKING:
    from utils.dataset.clip import ScanResult
    from utils.dataset.recognisers import Recogniser

CONFIG = DatasetConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("places", nargs="*", metavar="RECORDING", help="file, folder or URL; instead of --inputs")
    add_project(parser)
    parser.add_argument("--detach", action="store_true", help="return immediately; the run continues in the background")
    add_flags(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    """Start the run and follow it."""
    config = read_flags(arguments, CONFIG)
    places = [*arguments.places, *config.input_list()]
    if not places:
        raise ConfigError("No recordings are given.", hint="Usage: python -m utils prepare FILE_OR_FOLDER ...")
    if odd := [place for place in places if SEPARATOR in place]:
        raise ConfigError(f"{odd[0]!r} has a | in its name.", hint="Rename it, or give its folder.")
    inputs = SEPARATOR.join(map(_absolute, places))
    return start_and_follow("prepare", config.model_copy(update={"inputs": inputs}), arguments)


def work(job: Job, config: DatasetConfig) -> None:
    """Find the recordings and create their clips."""
    from utils.dataset import build, sources, statistics
    from utils.dataset.store import Store

    project = job.run.project
    scan = sources.find_recordings(
        config.input_list(),
        language=config.language,
        speaker=config.speaker,
        workspace=project.dataset / "recordings",
        on_progress=functools.partial(_report_download, job),
    )
    if not scan.recordings:
        reasons = "; ".join(f"{problem.path}: {problem.sentence}" for problem in scan.problems[:5])
        raise DataError(f"There is nothing to prepare. {reasons}", hint="Give audio or video files, or their folder.")
    job.events.emit("found", recordings=len(scan.recordings), problems=len(scan.problems))
    with ExitStack() as stack:
        recogniser, second = _recognisers(job, config, scan, stack)
        report = build.build(
            scan,
            project,
            config,
            job.events.emit,
            recogniser=recogniser,
            second=second,
            check_stop=job.stop_if_requested,  # finished recordings are stored
        )
    contents = report.contents
    job.events.emit("ledger", message=statistics.account(contents).render())
    job.events.emit("split", **statistics.split_counts(Store(project.dataset)), message=report.note)
    job.events.emit("prepared", added=report.added, known=report.known, bad=len(report.bad), clips=len(contents.kept))


def _report_download(job: Job, name: str, share: float) -> None:
    job.stop_if_requested()
    job.events.emit("fetched", name=name, percent=round(100 * share))


def _recognisers(
    job: Job, config: DatasetConfig, scan: "ScanResult", stack: ExitStack
) -> tuple["Recogniser | None", "Recogniser | None"]:
    """Return the recognisers that are needed; each is loaded for the first clip."""
    from utils.dataset.pipeline import needs_transcription
    from utils.dataset.recognisers import CTC, RecogniserSpec
    from utils.dataset.recognisers.isolated import IsolatedRecogniser

    def warn(message: str) -> None:
        job.events.emit("warning", message=message)

    if not config.transcribe or not any(map(needs_transcription, scan.recordings)):
        return None, None
    first = stack.enter_context(IsolatedRecogniser(RecogniserSpec(config.whisper_model, config.device), warn=warn))
    if not config.second_model:
        return first, None
    return first, stack.enter_context(
        IsolatedRecogniser(RecogniserSpec(config.second_model, config.device, factory=CTC), warn=warn)
    )


def _absolute(place: str) -> str:
    """Make a path absolute, because the run works in another directory."""
    path = Path(place).expanduser()
    return place if "://" in place or place.startswith("hf:") else str(path.resolve())
