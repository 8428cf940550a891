"""The models of this installation: lists those that can speak, finds one by name or path, and says where they are.

The libraries below know no folders but those that they are given. Nothing here loads torch until a base is needed.
"""

import difflib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from utils.config import TrainConfig
from utils.core.errors import RunError
from utils.core.facts import Report, ShouldStop, ignore, never_stop
from utils.core.paths import TINY_MODEL, expand_home
from utils.core.storage import cached_while_unchanged
from utils.studio import paths
from utils.studio.facts import UsageError
from utils.studio.paths import OUTPUT, Project, list_projects
from utils.studio.runs import Run, list_runs
from utils.xtts import checkpoints
from utils.xtts.checkpoints import TRAINED_FILES, SavedCheckpoint
from utils.xtts.facts import ModelFileError
from utils.xtts.files import (
    MODEL_FILE,
    MODEL_FILE_NAMES,
    REQUIRED_FILES,
    SETTINGS_FILE,
    TINY,
    VOCABULARY_FILE,
    missing_files,
    read_about,
)
from utils.xtts.tokenizer import Tokenizer

if TYPE_CHECKING:
    from utils.xtts.base_models import ModelSource

NEEDED = (MODEL_FILE, *REQUIRED_FILES)
VERSIONS: tuple[str, ...] = get_args(TrainConfig.model_fields["version"].annotation)

ModelKind = Literal["ready", "checkpoint", "base"]


@dataclass(frozen=True)
class ListedModel:
    """A model that can be opened."""

    name: str
    path: Path
    kind: ModelKind
    when: float  # time of writing, in seconds since 1970
    size: int
    eval_loss: float | None = None  # loss over the evaluation clips, if known
    is_best: bool = False  # whether it is the best checkpoint of its run
    run: Run | None = None  # of a checkpoint
    step: int = 0


def list_models(output: Path) -> list[ListedModel]:
    """List finished models, then checkpoints, then bases, each newest first, and the embedded voice last.

    Damaged models are left out. ``output`` has the projects, or is one; published models are beside the projects.
    """
    projects = [Project(output), *(Project(output / name) for name in list_projects(output))]
    models = [model for project in projects for model in _list_project(project)]
    for path in sorted((output / paths.MODELS.name).glob("[!.]*")):
        if path.name != TINY:  # earlier versions stored random weights under this name
            models += _base(path)
    order = get_args(ModelKind)
    models.sort(key=lambda model: (order.index(model.kind), -model.when))
    return [*models, *_base(TINY_MODEL)]


def preferred_model(models: Sequence[ListedModel], project: Path, selected: str) -> str:
    """Return the model that a visitor most likely wants: the project's finished, else selected, else best one.

    A project without a model gets the embedded voice, and not the model of another project.
    """

    def rank(model: ListedModel) -> tuple[bool, ...]:
        if not model.path.is_relative_to(project):
            return (False, model.path == TINY_MODEL)
        return True, model.kind == "ready", str(model.path) == selected, model.is_best

    return str(max(models, key=rank).path) if models else ""


def find_model(model: str | Path, output: Path = OUTPUT, source: "ModelSource | None" = None) -> Path:
    """Return the folder of a model's weights, or its .pth file; ``model`` is as in ``chosen_model``."""
    name = str(model).strip()
    if not name:
        finished = [model for model in list_models(output) if model.kind == "ready"]
        if not finished:
            raise ModelFileError(output, "nothing_finished")
        return max(finished, key=lambda model: model.when).path
    if name in VERSIONS:
        from utils.xtts.base_models import base_folder

        return base_folder(name, source or model_source())
    try:
        return _weights_in(_existing(name, output))
    except OSError as error:  # a name that is too long, a folder without permissions
        raise ModelFileError(Path(name[:200]), "unreadable", str(error.strerror)) from error


def _list_project(project: Project) -> Iterator[ListedModel]:
    if stats := _stats(project.ready):
        loss = read_about(project.ready).get("eval_loss")
        known = float(loss) if isinstance(loss, int | float) else None
        yield ListedModel(project.name, project.ready, "ready", *stats, known)
    try:
        runs = list_runs(project)
    except RunError:  # a folder without permissions hides its own runs, not those of the others
        return
    for run in runs:
        for each in checkpoints.list_checkpoints(run.folder):
            if info := each.info:
                name = f"{project.name}: {run.name} step {each.step}"
                yield ListedModel(
                    name,
                    each.folder,
                    "checkpoint",
                    info.time,
                    each.size,
                    info.eval_loss,
                    each.is_best,
                    run,
                    each.step,
                )


def _base(path: Path) -> Iterator[ListedModel]:
    if stats := _stats(path):
        yield ListedModel(path.name, path, "base", *stats)


def _stats(folder: Path) -> tuple[float, int] | None:
    try:
        files = {path.name: path.stat() for path in folder.iterdir() if path.is_file()}
    except OSError:  # it is not there, or is being replaced at this moment
        return None
    if not all(name in files and files[name].st_size for name in NEEDED):
        return None
    return files[MODEL_FILE].st_mtime, sum(file.st_size for file in files.values())


def _existing(name: str, output: Path) -> Path:
    path = expand_home(name)
    if path.exists():
        return path
    projects = list_projects(output)
    if name in projects:
        return output / name
    near = difflib.get_close_matches(name, [*projects, *VERSIONS], n=2)
    raise ModelFileError(path, "similar" if near else "not_found", ", ".join(near))


def _weights_in(path: Path) -> Path:
    if path.is_file():
        if path.suffix == ".pth":
            return path
        raise ModelFileError(path, "not_a_folder", str(path.absolute().parent))
    if _is_model(path) or path.name.startswith(checkpoints.PREFIX):
        return path
    if path.name == checkpoints.FOLDER:
        return _best_checkpoint(path.parent).folder
    if (path / checkpoints.FOLDER).is_dir() or (path / checkpoints.RESUME_STATE).is_file():
        return _best_checkpoint(path).folder
    if (project := Project(path)).ready.is_dir() or project.runs.is_dir():
        return _model_of(project)
    if not any(path.iterdir()):
        raise ModelFileError(path, "empty")
    raise ModelFileError(path, "lacks", ", ".join(missing_files(path)))


def _is_model(folder: Path) -> bool:
    return any((folder / name).exists() for name in (*TRAINED_FILES, *MODEL_FILE_NAMES, *REQUIRED_FILES))


def _model_of(project: Project) -> Path:
    """Return the finished model of a project, or the best checkpoint of its newest run that has one."""
    if _is_model(project.ready):
        return project.ready
    for run in list_runs(project):
        if any(not each.error for each in checkpoints.list_checkpoints(run.folder)):
            return _best_checkpoint(run.folder).folder
    raise ModelFileError(project.root, "untrained")


def _best_checkpoint(run: Path) -> SavedCheckpoint:
    listed = checkpoints.list_checkpoints(run)
    complete = [each for each in listed if not each.error]
    if not complete and listed:
        listed[0].require_info()  # raises what is wrong with it
    if not complete:
        raise ModelFileError(run, "no_checkpoint")
    return next((each for each in complete if each.is_best), complete[0])


def model_source(report: Report = ignore, should_stop: ShouldStop = never_stop) -> "ModelSource":
    """Return where published models are downloaded to."""
    from utils.xtts.base_models import ModelSource

    return ModelSource(paths.MODELS, paths.LICENCE_CONSENT, report=report, should_stop=should_stop)


def pronunciations_of(model: Path) -> Path | None:
    """Return the pronunciations of the project that a model was trained in; None outside a project.

    Models are ``ready`` or ``runs/NAME/checkpoints/step_N`` of a project.
    """
    folder = model.absolute()
    if folder.name == "ready":
        return Project(folder.parent).pronunciations
    parents = folder.parents
    if len(parents) > 3 and (parents[0].name, parents[2].name) == ("checkpoints", "runs"):
        return Project(parents[3]).pronunciations
    return None


def tokenizer_of(model: str) -> Tokenizer:
    """Open the vocabulary of a model by its folder, without loading the model."""
    if not model.strip():
        raise UsageError("no_model")
    folder = expand_home(model)
    if not os.path.isfile(folder / VOCABULARY_FILE):  # noqa: PTH113  # no error for a name that is too long
        raise UsageError("not_loaded")
    return _open_tokenizer(folder / VOCABULARY_FILE, folder / SETTINGS_FILE)


@cached_while_unchanged(8)
def _open_tokenizer(vocabulary: Path, _settings: Path) -> Tokenizer:
    return Tokenizer.load(vocabulary.parent, pronunciations_of(vocabulary.parent))
