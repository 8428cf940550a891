"""Base models: consent to their licence, state on disk, and downloads: start, pause, cancel, delete."""

import os
from pathlib import Path
from typing import NamedTuple, get_args

from utils.config import DownloadConfig
from utils.core.folders import remove_folder
from utils.core.paths import TINY_MODEL, resolve_inside, validate_name
from utils.core.storage import PARTIAL, make_folder, read_text, storage_errors
from utils.studio import paths, runs
from utils.studio.disk_usage import size_of
from utils.studio.facts import InputError, RunActiveError
from utils.studio.projects import downloads_project
from utils.xtts.facts import ConsentFixedError, LicenceError
from utils.xtts.files import HUB_FILES, TINY
from utils.xtts.hub import LICENCE, VARIABLE, accept_licence, download, file_info, licence_accepted

LICENCE_FILE = "LICENSE.txt"  # beside the model on the hub
VERB = "download-model"
VERSIONS: tuple[str, ...] = get_args(DownloadConfig.model_fields["version"].annotation)


class StoredModel(NamedTuple):
    """A base model on disk."""

    version: str
    files: int  # that are complete
    size: int  # bytes, with unfinished files
    is_begun: bool  # whether there is an unfinished file

    @property
    def is_whole(self) -> bool:
        return self.files == len(HUB_FILES)


def needs_consent(version: str, custom_model: str = "") -> bool:
    """Return whether this is a published model whose licence is not accepted yet."""
    is_published = version != TINY and not custom_model.strip()
    return is_published and not licence_accepted(paths.LICENCE_CONSENT)


def require_consent(version: str, custom_model: str = "") -> None:
    """Refuse a published model as long as its licence is not accepted."""
    if needs_consent(version, custom_model):
        raise LicenceError(LICENCE, VARIABLE)


def give_consent(name: str = "") -> None:
    """Store the consent to the licence, with the name of who gave it, if known."""
    accept_licence(paths.LICENCE_CONSENT, name)


def withdraw_consent() -> None:
    """Remove the consent; downloaded models stay."""
    if os.environ.get(VARIABLE) == "1":
        raise ConsentFixedError(VARIABLE)
    with storage_errors(paths.LICENCE_CONSENT):
        paths.LICENCE_CONSENT.unlink(missing_ok=True)


def licence_text() -> str:
    """Return the text from the hub; it is downloaded once."""
    path = paths.MODELS / LICENCE_FILE
    if not path.is_file():
        make_folder(paths.MODELS)
        found = file_info(LICENCE_FILE, "main")
        if found is None:
            raise InputError("no_licence_text", LICENCE_FILE)
        download(found, paths.MODELS, lambda _: None)
    return read_text(path)


def base_model(version: str) -> StoredModel:
    folder = TINY_MODEL if version == TINY else paths.MODELS / version
    files = sum((folder / name).is_file() for name in HUB_FILES)
    return StoredModel(version, files, size_of(folder), bool(_unfinished_files(version)))


def _unfinished_files(version: str) -> list[Path]:
    return list((paths.MODELS / version).glob(f".*{PARTIAL}"))


def current(output: Path) -> runs.Run | None:
    return runs.newest_run(downloads_project(output))


def available_actions(model: StoredModel, run: runs.Run | None) -> list[str]:
    """Return what can be done with a version; ``run`` is the last download."""
    if run and run.current_state().status in runs.ACTIVE:
        return ["pause", "cancel"] if version_of(run) == model.version else []
    can = {
        "download": not needs_consent(model.version) and not model.is_whole,
        "cancel": run is not None and model.is_begun,
        "delete": model.version != TINY and bool(model.files or model.is_begun),
    }
    return [action for action, is_possible in can.items() if is_possible]


def version_of(run: runs.Run) -> str:
    return DownloadConfig.load_own(run.config).version


def start(version: str, output: Path) -> runs.Run:
    """Download a version; an earlier download is continued."""
    config = DownloadConfig.parse({"version": version, "models": str(paths.MODELS)}, source="The form")
    require_consent(version)
    project = downloads_project(output)
    if active := runs.active_run(project):
        raise RunActiveError(active.name, version_of(active))
    for run in runs.list_runs(project):
        runs.delete(run)  # only the last one is shown
    return runs.start(VERB, config, project).run


def pause(output: Path) -> None:
    """Pause the download; partial files stay."""
    runs.stop_and_save(_require(runs.active_run(downloads_project(output))))


def cancel(output: Path) -> None:
    """Cancel the download and delete unfinished files."""
    run = _require(current(output))
    runs.stop_now(run)
    for path in _unfinished_files(version_of(run)):
        path.unlink(missing_ok=True)
    runs.delete(run)


def _require(run: runs.Run | None) -> runs.Run:
    if run is None:
        raise InputError("no_download")
    return run


def delete(version: str, output: Path) -> int:
    """Delete a base model and return its size; refused while any run is active, which may need it."""
    if version == TINY:
        raise InputError("built_in", version)
    folder = resolve_inside(paths.MODELS, validate_name(version))
    for name in paths.list_projects(output):
        runs.require_idle(paths.project(name, output))
    if busy := runs.active_run(downloads_project(output)):
        raise RunActiveError(busy.name, version_of(busy))
    size = size_of(folder)
    remove_folder(folder)
    return size
