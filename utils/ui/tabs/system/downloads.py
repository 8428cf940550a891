"""Downloads of base models: state on disk, start, pause, cancel, delete."""

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
from utils.core.paths import list_projects, project
from utils.core.storage import PARTIAL, remove_folder
from utils.ui.views import newest_events
from utils.workspace.disk_usage import size_of
from utils.workspace.projects import downloads_project
from utils.xtts.files import BUILT_IN, HUB_FILES, TINY
from utils.xtts.hub import LICENCE, LicenceError, licence_accepted

VERB = "download-model"
VERSIONS: tuple[str, ...] = get_args(DownloadConfig.model_fields["version"].annotation)
RECENT_BYTES = 16_384  # of the log, from which the speed is taken


@dataclass(frozen=True)
class BaseModel:
    """A base model on disk.

    Attributes:
        version: Its name.
        files: Number of its files on disk.
        size: Bytes, with unfinished files.
        is_begun: Whether there is an unfinished file.
    """

    version: str
    files: int
    size: int
    is_begun: bool

    @property
    def is_whole(self) -> bool:
        """Tell whether all its files are on disk."""
        return self.files == len(HUB_FILES)


@dataclass(frozen=True)
class DownloadProgress:
    """Progress of a download.

    Attributes:
        part: The current file.
        done: Bytes on disk.
        total: Bytes of all files.
        seconds_left: Estimate; None when unknown.
    """

    part: str
    done: int
    total: int
    seconds_left: float | None


def needs_consent() -> bool:
    """Tell whether the licence still has to be accepted before a download."""
    return not licence_accepted(paths.LICENCE_CONSENT)


def base_model(version: str) -> BaseModel:
    """Return the state of a version on disk."""
    folder = paths.TINY_MODEL if version == TINY else paths.MODELS / version
    count = sum((folder / name).is_file() for name in HUB_FILES)
    return BaseModel(version, count, size_of(folder), any(_unfinished_files(version)))


def _unfinished_files(version: str) -> Iterator[Path]:
    yield from (paths.MODELS / version).glob(f".*{PARTIAL}")


def current(output: Path) -> runs.Run | None:
    """Return the last download."""
    return next(iter(runs.list_runs(downloads_project(output))), None)


def is_active(output: Path) -> bool:
    """Tell whether a download is running."""
    run = current(output)
    return run is not None and run.current_state().status in runs.ACTIVE


def version_of(run: runs.Run) -> str:
    """Return the version that a run downloads."""
    return DownloadConfig.load(run.config).version


def start(version: str, output: Path) -> runs.Run:
    """Download a version; an earlier download is continued."""
    config = DownloadConfig.parse({"version": version, "models": str(paths.MODELS)}, source="The form")
    if version not in BUILT_IN and needs_consent():
        raise LicenceError(f"The {LICENCE} of the base model has not been accepted yet.", hint="Accept it above.")
    for run in runs.list_runs(downloads_project(output)):
        if run.current_state().status in runs.ACTIVE:
            raise RunBusyError(f"{version_of(run)} is being downloaded.", hint="Pause it first, or wait until it ends.")
        runs.delete(run)  # only the last one is shown
    return runs.start(VERB, config, downloads_project(output))


def pause(output: Path) -> None:
    """Pause the download; partial files stay."""
    runs.stop_and_save(_active(output))


def cancel(output: Path) -> None:
    """Cancel the download and delete unfinished files."""
    run = current(output)
    if run is None:
        raise RunError("No download is running.", hint="Choose a version and press Download.")
    runs.stop_now(run)
    for path in _unfinished_files(version_of(run)):
        path.unlink(missing_ok=True)
    runs.delete(run)


def _active(output: Path) -> runs.Run:
    run = current(output)
    if run is None or run.current_state().status not in runs.ACTIVE:
        raise RunError("No download is running.", hint="Choose a version and press Download.")
    return run


def delete(version: str, output: Path) -> int:
    """Delete a base model; refused while any run is active, which may need it."""
    if version == TINY:
        raise RunError(f"{version} is built in and cannot be deleted.", hint="Choose another version.")
    folder = paths.resolve_inside(paths.MODELS, paths.validate_name(version))
    for name in list_projects(output):
        if busy := runs.active_run(project(name, output)):
            raise RunBusyError(f"{busy.name} of {name} is running.", hint="Stop it first.")
    if is_active(output):
        raise RunBusyError(f"{version} may be downloading.", hint="Pause the download first.")
    size = size_of(folder)
    remove_folder(folder)
    return size


def progress(run: runs.Run) -> DownloadProgress | None:
    """Read the progress of a download from its last events."""
    found = newest_events(run, RECENT_BYTES)
    events = [event for event in found if event["kind"] == "progress" and as_integer(event.get("step")) is not None]
    if not events:
        return None
    last = events[-1]
    done, total = _number(last, "step"), _number(last, "total")
    rate = _rate(events[0], last)
    return DownloadProgress(str(last.get("part", "")), int(done), int(total), (total - done) / rate if rate else None)


def _rate(first: Event, last: Event) -> float:
    seconds = _number(last, "time") - _number(first, "time")
    stale = time.time() - _number(last, "time") > 60
    return 0.0 if seconds <= 0 or stale else max(0.0, _number(last, "step") - _number(first, "step")) / seconds


def _number(event: Event, name: str) -> float:
    return as_number(event.get(name)) or 0.0
