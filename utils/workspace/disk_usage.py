"""What the projects take on the disk, and what of it can go without a loss: it is old, spare or can be made again."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from utils import runs
from utils.core.errors import ConfigError, RunBusyError
from utils.core.folders import remove_folder
from utils.core.paths import Project
from utils.dataset.features import FOLDER as FEATURES
from utils.xtts import checkpoints

RESUME = "resume"  # folder of a run: what it goes on from


@dataclass(frozen=True)
class DiskUsage:
    """Bytes of one project, by part.

    Attributes:
        dataset: Recordings, clips and lists.
        features: What training reads of the clips.
        checkpoints: Models to choose from.
        resume: What runs go on from.
        ready: The finished model.
        other: Everything else.
    """

    dataset: int = 0
    features: int = 0
    checkpoints: int = 0
    resume: int = 0
    ready: int = 0
    other: int = 0

    @property
    def total(self) -> int:
        """Return the sum."""
        return sum(vars(self).values())


def measure(project: Project) -> DiskUsage:
    """Add up the files of a project; one that vanishes meanwhile counts nothing."""
    found = dict.fromkeys(DiskUsage.__dataclass_fields__, 0)
    for path, size in _sizes(project.root):
        found[_part(path.relative_to(project.root).parts)] += size
    return DiskUsage(**found)


def _part(parts: tuple[str, ...]) -> str:
    match parts:
        case ("dataset", "features", _, *_):
            return "features"
        case ("dataset" | "ready" as part, _, *_):
            return part
        case ("runs", _, "checkpoints" | "resume" as part, _, *_):
            return part
    return "other"


def size_of(path: Path) -> int:
    """Add up the files of a folder, or return the size of a file."""
    if path.is_file():
        return path.stat().st_size
    return sum(size for _, size in _sizes(path))


def _sizes(root: Path) -> Iterator[tuple[Path, int]]:
    try:
        with os.scandir(root) as entries:
            for entry in list(entries):
                if entry.is_dir(follow_symlinks=False):
                    yield from _sizes(Path(entry.path))
                else:
                    yield Path(entry.path), entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:  # deleted at this moment
        return


def _old_checkpoints(project: Project) -> Iterator[Path]:
    for run in runs.list_runs(project):
        whole = [one for one in checkpoints.list_checkpoints(run.folder) if not one.error]
        yield from (one.folder for one in whole[1:] if not one.is_best)


def _features(project: Project) -> Iterator[Path]:
    yield from _present(project.dataset / FEATURES)


def _resume_states(project: Project) -> Iterator[Path]:
    for run in runs.list_runs(project):
        if run.current_state().status is runs.Status.FINISHED:
            yield from _present(run.folder / RESUME)


def _exports(project: Project) -> Iterator[Path]:
    yield from _present(project.exports)


def _present(path: Path) -> Iterator[Path]:
    if path.exists():
        yield path


SPARE: Mapping[str, Callable[[Project], Iterator[Path]]] = {
    "checkpoints": _old_checkpoints,
    "features": _features,
    "resume": _resume_states,
    "exports": _exports,
}


def reclaimable(project: Project) -> dict[str, int]:
    """Return how many bytes each kind of spare files takes."""
    return {kind: sum(map(size_of, find(project))) for kind, find in SPARE.items()}


def reclaim(project: Project, kind: str) -> int:
    """Delete spare files of one kind and return how many bytes they took; refused while a run is at work."""
    if kind not in SPARE:
        raise ConfigError(f"{kind!r} is nothing that can be deleted.", hint=f"Choose one of {', '.join(SPARE)}.")
    if run := runs.active_run(project):
        raise RunBusyError(f"{run.name} is at work and may need these files.", hint="Stop it first.")
    freed = 0
    for path in list(SPARE[kind](project)):
        size = size_of(path)
        remove_folder(path)
        freed += size
    return freed
