"""Where models lie: what a person may name to speak with."""

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from utils.config import TrainConfig
from utils.core.errors import RunError
from utils.core.folders import DamagedError
from utils.core.paths import OUTPUT, Project, list_projects
from utils.runs import list_runs
from utils.speech.models import list_models
from utils.xtts import checkpoints
from utils.xtts.base_models import ModelSource, base_folder
from utils.xtts.checkpoints import ADAPTER, ADAPTER_CONFIG, Checkpoint
from utils.xtts.files import MODEL_FILE, MODEL_FILE_NAMES, REQUIRED_FILES, ModelFileError

VERSIONS: tuple[str, ...] = get_args(TrainConfig.model_fields["version"].annotation)
TRAINED = (checkpoints.MANIFEST, checkpoints.MODEL, ADAPTER, ADAPTER_CONFIG)
MOVED = "Put it back, or name it as base: the vocoder comes from there."
CURE = "Name a finished model, a checkpoint, a run, a project, a base version or a folder of coqui."


def find_model(place: str | Path, output: Path = OUTPUT, source: ModelSource | None = None) -> Path:
    """Return the folder that holds the weights that a person means, or the .pth itself.

    Args:
        place: As in ``open_model``.
        output: Where the projects lie.
        source: Where published models come from.
    """
    named = str(place).strip()
    if not named:
        return newest_ready(output)
    if named in VERSIONS:
        return base_folder(named, source=source)
    try:
        return _meant(_existing(named, output))
    except OSError as error:  # a name that is too long, a folder without rights
        raise ModelFileError(f"{named[:200]} cannot be read: {error.strerror}.", hint=CURE) from error


def newest_ready(output: Path = OUTPUT) -> Path:
    """Return the folder of the model that was finished last, in any project."""
    finished = [found for found in list_models(output) if found.kind == "ready"]
    if not finished:
        raise ModelFileError(
            f"There is no finished model in {output}.",
            hint="Train one, promote a checkpoint (python -m utils checkpoints promote), or name a model, "
            "such as tiny, which is always here.",
        )
    return max(finished, key=lambda found: found.when).path


def chosen(run: Path) -> Checkpoint:
    """Return the best checkpoint of a run, or else its newest."""
    known = checkpoints.list_checkpoints(run)
    whole = [one for one in known if not one.error]
    if not whole:
        if known:
            raise DamagedError(known[0].error, hint="Choose another run, or let this one go on.")
        raise RunError(f"{run} has no checkpoint yet.", hint="Let it go on until it has saved one, or choose another.")
    return next((one for one in whole if one.is_best), whole[0])


def lacking(folder: Path, weights: Path | None = None) -> list[str]:
    """List what a folder of coqui lacks to be opened, apart from weights that were named themselves."""
    there = {path.name for path in folder.iterdir() if path.is_file()}
    absent = [] if weights or there & set(MODEL_FILE_NAMES) else [MODEL_FILE]
    return absent + [name for name in REQUIRED_FILES if name not in there]


def _existing(named: str, output: Path) -> Path:
    """Return a path, or the project of that name."""
    path = Path(named).expanduser()
    if path.exists():
        return path
    projects = list_projects(output)
    if named in projects:
        return output / named
    near = difflib.get_close_matches(named, [*projects, *VERSIONS], n=2)
    meant = f"Did you mean {' or '.join(near)}? " if near else ""
    raise ModelFileError(f"{path} does not exist.", hint=meant + CURE)


def _meant(path: Path) -> Path:
    """Find the weights in a place that exists."""
    if path.is_file():
        if path.suffix == ".pth":
            return path
        raise ModelFileError(f"{path} is a file, not a folder.", hint=f"Name the folder of a model: {path.parent}?")
    if _is_model(path):
        return path
    for holds, choose in LAYOUTS:
        if holds(path):
            return choose(path)
    if not any(path.iterdir()):
        raise ModelFileError(f"{path} is an empty folder.", hint=CURE)
    raise ModelFileError(f"{path} holds no {', no '.join(lacking(path))}.", hint=CURE)


def _is_model(folder: Path) -> bool:
    """Tell a folder of weights, a damaged one too, from one that holds other folders."""
    return any((folder / name).exists() for name in (*TRAINED, *MODEL_FILE_NAMES, *REQUIRED_FILES))


def _is_run(folder: Path) -> bool:
    return (folder / checkpoints.FOLDER).is_dir() or (folder / checkpoints.RESUME_STATE).is_file()


def _is_project(folder: Path) -> bool:
    project = Project(folder)
    return project.ready.is_dir() or project.runs.is_dir()


def _of_project(folder: Path) -> Path:
    """Return the finished model of a project, or else the checkpoint to take of its newest run that has any."""
    project = Project(folder)
    if _is_model(project.ready):
        return project.ready
    for run in list_runs(project):
        if any(not one.error for one in checkpoints.list_checkpoints(run.folder)):
            return chosen(run.folder).folder
    raise ModelFileError(
        f"{folder} has neither a finished model nor a whole checkpoint.", hint="Train first, or name another model."
    )


LAYOUTS: tuple[tuple[Callable[[Path], bool], Callable[[Path], Path]], ...] = (
    (lambda path: path.name == checkpoints.FOLDER, lambda path: chosen(path.parent).folder),
    (lambda path: path.name.startswith(checkpoints.PREFIX), lambda path: path),  # to be told what it lacks
    (_is_run, lambda path: chosen(path).folder),
    (_is_project, _of_project),
)
