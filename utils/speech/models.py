"""The models that can be opened, for people to choose from: found without loading torch."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from utils.core.errors import RunError
from utils.core.paths import MODELS, OUTPUT, TINY_MODEL, Project, list_projects
from utils.runs import Run, list_runs
from utils.xtts import checkpoints
from utils.xtts.files import MODEL_FILE, REQUIRED_FILES, TINY, read_about

NEEDED = (MODEL_FILE, *REQUIRED_FILES)  # what speaking takes at least

ModelKind = Literal["ready", "checkpoint", "base"]


@dataclass(frozen=True)
class ListedModel:
    """A model that can be opened, for people to choose from.

    Attributes:
        name: What to call it.
        path: What to open.
        kind: A finished model, a checkpoint of a run, or a base to train from.
        when: When it was written, in seconds since 1970.
        size: Bytes on disk.
        eval_loss: Loss over the evaluation clips, where it is known.
        is_best: Whether it is the best checkpoint of its run.
    """

    name: str
    path: Path
    kind: ModelKind
    when: float
    size: int
    eval_loss: float | None = None
    is_best: bool = False


def list_models(output: Path = OUTPUT, bases: Path | None = None) -> list[ListedModel]:
    """List what can be opened: finished models, then checkpoints, then bases, each newest first.

    The small voice that comes with the program is the last. No weights are read, and what is damaged is left out.

    Args:
        output: Where the projects lie; it may be a project itself.
        bases: Where published models lie; None: beside the projects.
    """
    projects = [Project(output), *(Project(output / name) for name in list_projects(output))]
    found = [*_finished(projects), *_checkpoints(projects), *_bases(bases or output / MODELS.name)]
    order = get_args(ModelKind)
    found.sort(key=lambda one: (order.index(one.kind), -one.when))
    return [*found, *_base(TINY_MODEL)]


def _finished(projects: list[Project]) -> Iterator[ListedModel]:
    for project in projects:
        if whole := _whole(project.ready):
            loss = read_about(project.ready).get("eval_loss")
            known = float(loss) if isinstance(loss, int | float) else None
            yield ListedModel(project.root.name, project.ready, "ready", *whole, known)


def _checkpoints(projects: list[Project]) -> Iterator[ListedModel]:
    for project in projects:
        for run in _runs(project):
            for one in checkpoints.list_checkpoints(run.folder):
                if one.info is not None:
                    name = f"{project.root.name}: {run.name} step {one.step}"
                    about = one.info
                    yield ListedModel(
                        name, one.folder, "checkpoint", about.time, one.size, about.eval_loss, one.is_best
                    )


def _runs(project: Project) -> list[Run]:
    try:
        return list_runs(project)
    except RunError:  # a folder without rights hides its own runs, not those of the others
        return []


def _bases(folder: Path) -> Iterator[ListedModel]:
    for path in sorted(folder.glob("[!.]*")):
        if path.name != TINY:  # earlier versions kept random weights under this name
            yield from _base(path)


def _base(path: Path) -> Iterator[ListedModel]:
    if whole := _whole(path):
        yield ListedModel(path.name, path, "base", *whole)


def _whole(folder: Path) -> tuple[float, int] | None:
    """Return when a model was written and its bytes, or None when something that it needs is not there."""
    try:
        files = {path.name: path.stat() for path in folder.iterdir() if path.is_file()}
    except OSError:  # it is not there, or is being replaced at this moment
        return None
    if not all(name in files and files[name].st_size for name in NEEDED):
        return None
    return files[NEEDED[0]].st_mtime, sum(file.st_size for file in files.values())
