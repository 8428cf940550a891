"""Projects as folders: made, copied, renamed, and deleted in such a way that they can be brought back for some days."""

import contextlib
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from utils import runs
from utils.core.errors import RunBusyError, StorageError
from utils.core.folders import link_or_copy, remove_folder, require_space
from utils.core.paths import OUTPUT, Project, list_projects, project, resolve_inside
from utils.core.storage import file_lock, make_folder, retry_while_in_use, storage_error, write_atomically

TRASH = ".trash"
DOWNLOADS = ".downloads"
DELETED = re.compile(r"(?P<time>\d{15,20})-(?P<name>.+)")
COPYING = re.compile(r"\..+\.copy-\d+")
LEFT = re.compile(r"\.lock|\..*\.partial|\.deleted-.*|\..+\.(new|old|gone)-\d+")  # of work at this moment, or of a kill
DAY = 86_400.0
TRASH_DAYS = 7
STEP_SECONDS = 0.2

# Files that nobody changes in place: a copy of the project may share them. All others grow or are edited.
SHARED = frozenset(
    ".wav .flac .mp3 .ogg .opus .m4a .aac .mp4 .mkv .webm .mov .avi .pth .pt .safetensors .arrow .parquet".split()
)


@dataclass(frozen=True)
class CopyProgress:
    """How far a copy is, in files."""

    done: int
    total: int


@dataclass(frozen=True)
class DeletedProject:
    """A deleted project that can still be brought back.

    Attributes:
        folder: Where it lies now.
        name: What it was called.
        time: When it was deleted, in seconds since 1970.
    """

    folder: Path
    name: str
    time: float

    @property
    def id(self) -> str:
        """Return what tells it from others of its name."""
        return self.folder.name


def downloads_project(output: Path = OUTPUT) -> Project:
    """Return the place of the runs that fetch base models, which belong to no project."""
    return Project(output.resolve() / DOWNLOADS)


def create(name: str, output: Path = OUTPUT) -> Project:
    """Make a project of a name that is free."""
    made = free_place(name, output)
    make_folder(output)
    try:
        made.root.mkdir()
    except OSError as error:
        raise storage_error(made.root, error) from error
    return made


def find(name: str, output: Path = OUTPUT) -> Project:
    """Return the project of a name, which has to be there."""
    found = project(name, output)
    if not found.root.is_dir():
        there = ", ".join(list_projects(output)) or "none yet"
        raise StorageError(f"There is no project {found.root.name}.", hint=f"There are: {there}.")
    return found


def free_place(name: str, output: Path = OUTPUT) -> Project:
    """Return where a project of a new name will lie; a name that is taken is refused."""
    place = project(name, output)
    if place.root.exists():
        raise StorageError(f"There is a project {place.root.name} already.", hint="Choose another name.")
    return place


def duplicate(
    place: Project, name: str, output: Path = OUTPUT, on_step: Callable[[CopyProgress], object] = lambda _: None
) -> Project:
    """Copy a project under a new name; what nobody changes is shared on the disk where the system can do that.

    Args:
        place: The project.
        name: Of the copy.
        output: The folder of the projects.
        on_step: Is told how far it is.
    """
    target = free_place(name, output)
    _refuse_while_busy(place)
    files = list(_files(place.root))
    copied = [path for path in files if not (_is_shared(path) and _can_link(path, output))]
    require_space(target.root, sum(path.lstat().st_size for path in copied))
    new = output / f".{target.root.name}.copy-{time.time_ns()}"
    try:
        _copy(files, place.root, new, on_step)
        _readdress(new, place.root, target.root)
        free_place(name, output)  # somebody may have made it meanwhile
        retry_while_in_use(lambda: new.rename(target.root))
    except BaseException as error:
        shutil.rmtree(new, ignore_errors=True)  # the error below says why
        if isinstance(error, OSError):
            raise storage_error(target.root, error) from error
        raise
    return target


def rename(place: Project, name: str, output: Path = OUTPUT) -> Project:
    """Give a project another name."""
    target = free_place(name, output)
    before = place.root
    with _at_rest(place):
        _move(before, target.root)
    _readdress(target.root, before, target.root)
    return target


def delete(place: Project, output: Path = OUTPUT) -> DeletedProject:
    """Move a project to the deleted ones, from where it can be brought back."""
    make_folder(output / TRASH)
    target = output / TRASH / f"{time.time_ns()}-{place.root.name}"
    with _at_rest(place):
        _move(place.root, target)
    return _deleted(target)


def list_deleted(output: Path = OUTPUT) -> list[DeletedProject]:
    """List the deleted projects, the last one first."""
    folder = output / TRASH
    found = [path for path in folder.iterdir() if DELETED.fullmatch(path.name)] if folder.is_dir() else []
    return sorted(map(_deleted, found), key=lambda one: one.time, reverse=True)


def restore(which: str, output: Path = OUTPUT) -> Project:
    """Bring a deleted project back, under the next free name when its own is taken."""
    known = {one.id: one for one in list_deleted(output)}
    if which not in known:
        raise StorageError("This project is no longer among the deleted ones.", hint="Choose another one.")
    name, number = known[which].name, 2
    while (target := project(name, output)).root.exists():
        name, number = f"{known[which].name}-{number}", number + 1
    _move(resolve_inside(output / TRASH, which), target.root)
    return target


def empty_trash(output: Path = OUTPUT, *, days: float = 0.0) -> int:
    """Remove what was deleted longer ago than some days, and what killed copies left; return how many projects."""
    gone = [one for one in list_deleted(output) if time.time() - one.time >= days * DAY]
    for one in gone:
        remove_folder(one.folder)
    for path in output.glob(".*.copy-*") if output.is_dir() else ():
        if COPYING.fullmatch(path.name) and time.time() - path.stat().st_mtime > DAY:
            shutil.rmtree(path, ignore_errors=True)
    return len(gone)


def _deleted(folder: Path) -> DeletedProject:
    match = DELETED.fullmatch(folder.name)
    if match is None:
        raise StorageError(f"{folder} is no deleted project.")
    return DeletedProject(folder, match["name"], int(match["time"]) / 1e9)


def _refuse_while_busy(place: Project) -> None:
    if busy := runs.active_run(place):
        raise RunBusyError(
            f"{busy.name} of {place.root.name} is at work.", hint="Stop it first, or wait until it ends."
        )


@contextlib.contextmanager
def _at_rest(place: Project) -> Iterator[None]:
    """Make sure that no run is at work, and that none is started meanwhile."""
    make_folder(place.runs)
    with contextlib.ExitStack() as held:
        held.enter_context(file_lock(place.runs / ".lock"))
        _refuse_while_busy(place)
        if sys.platform == "win32":
            held.close()  # a folder in which a file is open cannot be renamed there
        yield


def _move(source: Path, target: Path) -> None:
    try:
        retry_while_in_use(lambda: source.rename(target))
    except OSError as error:
        raise StorageError(
            f"{source} cannot be moved: {error.strerror}.", hint="Close what has a file of it open, and try again."
        ) from error


def _files(root: Path) -> Iterator[Path]:
    """Name every file and every link; what belongs to work of this moment is left out."""
    for here, folders, names in os.walk(root):
        links = [name for name in folders if Path(here, name).is_symlink()]
        folders[:] = sorted(name for name in folders if name not in links and not LEFT.fullmatch(name))
        yield from (Path(here, name) for name in sorted([*names, *links]) if not LEFT.fullmatch(name))


def _is_shared(path: Path) -> bool:
    return path.suffix.lower() in SHARED and not path.is_symlink()


def _can_link(path: Path, output: Path) -> bool:
    """Tell whether a file may get a second name below the output folder, which only works on one disk."""
    return path.stat().st_dev == output.stat().st_dev and hasattr(os, "link")


def _copy(files: list[Path], root: Path, new: Path, on_step: Callable[[CopyProgress], object]) -> None:
    told = 0.0
    new.mkdir()
    for number, path in enumerate(files):
        if time.monotonic() - told > STEP_SECONDS:
            told = time.monotonic()
            on_step(CopyProgress(number, len(files)))
        target = new / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        _put(path, target)
    on_step(CopyProgress(len(files), len(files)))


def _put(path: Path, target: Path) -> None:
    if path.is_symlink():
        target.symlink_to(path.readlink())
    elif _is_shared(path):
        link_or_copy(path, target)
    else:
        shutil.copy2(path, target)


def _readdress(root: Path, before: Path, now: Path) -> None:
    """Have the runs find their base model again where it is one of the project itself."""
    for note in root.glob("runs/*/base.json"):
        text = note.read_text(encoding="utf-8")
        moved = text.replace(f"{before.as_posix()}/", f"{now.as_posix()}/")
        if moved != text:
            write_atomically(note, moved)
