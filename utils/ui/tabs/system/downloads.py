"""Which base models are here, and the run that fetches one: begin, pause, go on, give up, delete."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from utils import runs
from utils.config import DownloadConfig
from utils.core import paths
from utils.core.errors import RunBusyError, RunError
from utils.core.events import Event, as_integer, as_number
from utils.core.folders import remove_folder
from utils.core.paths import list_projects, project
from utils.core.storage import PARTIAL
from utils.ui.views import newest_events
from utils.workspace.disk_usage import size_of
from utils.workspace.projects import downloads_project
from utils.xtts.files import BUILT_IN, HUB_FILES, TINY
from utils.xtts.licence import LICENCE, LicenceError, licence_accepted

VERB = "download-model"
VERSIONS: tuple[str, ...] = get_args(DownloadConfig.model_fields["version"].annotation)
RECENT_BYTES = 16_384  # of the log, from which the speed is taken


@dataclass(frozen=True)
class Base:
    """One base model as the disk has it.

    Attributes:
        version: Its name.
        files: How many of its files are here.
        size: Bytes, those of half files included.
        is_begun: Whether there is a half file.
    """

    version: str
    files: int
    size: int
    is_begun: bool

    @property
    def is_whole(self) -> bool:
        """Tell whether all its files are here."""
        return self.files == len(HUB_FILES)


@dataclass(frozen=True)
class Progress:
    """How far a download is.

    Attributes:
        part: The file that is being fetched.
        done: Bytes that are here.
        total: Bytes of all files.
        seconds_left: What the rest will take; None when that is not known yet.
    """

    part: str
    done: int
    total: int
    seconds_left: float | None


def needs_consent() -> bool:
    """Tell whether somebody still has to agree to the licence before a published version can be fetched."""
    return not licence_accepted(paths.LICENCE_CONSENT)


def look(version: str) -> Base:
    """Say what is here of a version."""
    folder = paths.TINY_MODEL if version == TINY else paths.MODELS / version
    there = sum((folder / name).is_file() for name in HUB_FILES)
    return Base(version, there, size_of(folder), any(_halves(version)))


def _halves(version: str) -> Iterator[Path]:
    yield from (paths.MODELS / version).glob(f".*{PARTIAL}")


def current(output: Path) -> runs.Run | None:
    """Return the download that was begun last."""
    return next(iter(runs.list_runs(downloads_project(output))), None)


def is_at_work(output: Path) -> bool:
    """Tell whether something is being fetched."""
    run = current(output)
    return run is not None and run.current_state().status in runs.ACTIVE


def version_of(run: runs.Run) -> str:
    """Return what a run fetches."""
    return DownloadConfig.load(run.config).version


def begin(version: str, output: Path) -> runs.Run:
    """Fetch a version; what an earlier try left is continued."""
    config = DownloadConfig.parse({"version": version, "models": str(paths.MODELS)}, source="The form")
    if version not in BUILT_IN and needs_consent():
        raise LicenceError(
            f"The base version comes under the {LICENCE}, and nobody has agreed to it yet.", hint="Agree to it above."
        )
    for run in runs.list_runs(downloads_project(output)):
        if run.current_state().status in runs.ACTIVE:
            raise RunBusyError(f"{version_of(run)} is being fetched.", hint="Pause it first, or wait until it ends.")
        runs.delete(run)  # only the last one is ever shown
    return runs.start(VERB, config, downloads_project(output))


def pause(output: Path) -> None:
    """Stop fetching; what has arrived stays."""
    runs.stop_and_save(_active(output))


def give_up(output: Path) -> None:
    """Stop fetching and delete what has arrived of unfinished files."""
    run = current(output)
    if run is None:
        raise RunError("Nothing is being fetched.", hint="Choose a version and click Download.")
    runs.stop_now(run)
    for half in _halves(version_of(run)):
        half.unlink(missing_ok=True)
    runs.delete(run)


def _active(output: Path) -> runs.Run:
    run = current(output)
    if run is None or run.current_state().status not in runs.ACTIVE:
        raise RunError("Nothing is being fetched.", hint="Choose a version and click Download.")
    return run


def delete(version: str, output: Path) -> int:
    """Delete a base model; refused while any run is at work, because it may need it."""
    if version == TINY:
        raise RunError(f"{version} comes with the program and stays.", hint="Delete another version.")
    folder = paths.resolve_inside(paths.MODELS, paths.validate_name(version))
    for name in list_projects(output):
        if busy := runs.active_run(project(name, output)):
            raise RunBusyError(f"{busy.name} of {name} is at work.", hint="Stop it first.")
    if is_at_work(output):
        raise RunBusyError(f"{version} may be being fetched.", hint="Pause the download first.")
    size = size_of(folder)
    remove_folder(folder)
    return size


def progress(run: runs.Run) -> Progress | None:
    """Read how far a download is from its last events."""
    found = newest_events(run, RECENT_BYTES)
    told = [event for event in found if event["kind"] == "progress" and as_integer(event.get("step")) is not None]
    if not told:
        return None
    last = told[-1]
    done, total = _number(last, "step"), _number(last, "total")
    rate = _rate(told[0], last)
    return Progress(str(last.get("part", "")), int(done), int(total), (total - done) / rate if rate else None)


def _rate(first: Event, last: Event) -> float:
    seconds = _number(last, "time") - _number(first, "time")
    stale = time.time() - _number(last, "time") > 60
    return 0.0 if seconds <= 0 or stale else max(0.0, _number(last, "step") - _number(first, "step")) / seconds


def _number(event: Event, name: str) -> float:
    return as_number(event.get(name)) or 0.0
