"""Disk usage of projects, and files that can be deleted without a loss."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from utils.core.folders import remove_folder
from utils.dataset.features import FOLDER as FEATURES
from utils.studio import runs
from utils.studio.facts import UsageError
from utils.studio.paths import Project
from utils.xtts import checkpoints


@dataclass(frozen=True)
class DiskUsage:
    """Bytes of one project, by part."""

    dataset: int = 0
    features: int = 0  # encoded clips for training
    checkpoints: int = 0
    resume: int = 0
    ready: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        return sum(vars(self).values())


def measure(project: Project) -> DiskUsage:
    usage = dict.fromkeys(DiskUsage.__dataclass_fields__, 0)
    for path, size in _sizes(project.root):
        match path.relative_to(project.root).parts:
            case ("dataset", "features", _, *_):
                usage["features"] += size
            case ("dataset" | "ready" as part, _, *_) | ("runs", _, "checkpoints" | "resume" as part, _, *_):
                usage[part] += size
            case _:
                usage["other"] += size
    return DiskUsage(**usage)


def size_of(path: Path) -> int:
    """Return the size of a file or folder."""
    return path.stat().st_size if path.is_file() else sum(size for _, size in _sizes(path))


def _sizes(root: Path) -> Iterator[tuple[Path, int]]:
    for folder, _, names in os.walk(root):
        for path in (Path(folder, name) for name in names):
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                yield path, path.lstat().st_size


def _old_checkpoints(project: Project) -> list[Path]:
    """Return the checkpoints of each run except its newest and its best; damaged ones stay too."""
    old = []
    for run in runs.list_runs(project):
        intact = [checkpoint for checkpoint in checkpoints.list_checkpoints(run.folder) if not checkpoint.error]
        old += [checkpoint.folder for checkpoint in intact[1:] if not checkpoint.is_best]
    return old


def _finished_resume_data(project: Project) -> list[Path]:
    finished = [run for run in runs.list_runs(project) if run.current_state().status == "finished"]
    return [run.folder / checkpoints.RESUME_FOLDER for run in finished]


RECLAIMABLE: Mapping[str, Callable[[Project], list[Path]]] = {
    "checkpoints": _old_checkpoints,
    "features": lambda project: [project.dataset / FEATURES],
    "resume": _finished_resume_data,
    "exports": lambda project: [project.exports],
}


def reclaimable(project: Project) -> dict[str, int]:
    """Return the bytes of each kind of files that can be deleted."""
    return {kind: sum(map(size_of, paths(project))) for kind, paths in RECLAIMABLE.items()}


def reclaim(project: Project, kind: str) -> int:
    """Delete files of one kind and return their bytes; raise while a run is active."""
    if kind not in RECLAIMABLE:
        raise UsageError("not_reclaimable", kind, ", ".join(RECLAIMABLE))
    runs.require_idle(project)
    freed = 0
    for path in filter(Path.exists, RECLAIMABLE[kind](project)):
        size = size_of(path)
        remove_folder(path)
        freed += size
    return freed
