"""Create, copy, rename, delete and restore projects."""

import contextlib
import os
import re
import shutil
import sqlite3
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from utils.core.facts import Report, counted, ignore
from utils.core.folders import remove_folder
from utils.core.paths import resolve_inside, validate_name
from utils.core.storage import (
    link_or_copy,
    make_folder,
    read_document,
    require_space,
    retry_while_in_use,
    storage_errors,
    write_document,
)
from utils.dataset.database import DATABASE
from utils.dataset.seal import SEAL
from utils.dataset.store import Store
from utils.studio import runs
from utils.studio.facts import ProjectError
from utils.studio.paths import OUTPUT, Project, list_projects, project, same_folder

TRASH = ".trash"
DOWNLOADS = ".downloads"
DELETED = re.compile(r"(?P<time>\d{15,20})-(?P<name>.+)")
COPYING = re.compile(r"\..+\.copy-\d+")
# Files of running work, or left by a crash.
TEMPORARY = re.compile(rf"\.lock|{DATABASE}-journal|\..*\.partial|\.deleted-.*|\..+\.(new|old|gone)-\d+")
DAY = 86_400.0
TRASH_DAYS = 7

# Files that are never changed in place, so copies of a project can share them.
SHARED = frozenset(
    ".wav .flac .mp3 .ogg .opus .m4a .aac .mp4 .mkv .webm .mov .avi .pth .pt .safetensors .arrow .parquet".split()
)


class DeletedProject(NamedTuple):
    """A deleted project that can be restored."""

    folder: Path
    name: str
    time: float  # when it was deleted (Unix time)

    @property
    def id(self) -> str:
        return self.folder.name


def downloads_project(output: Path) -> Project:
    """Return the hidden project of model downloads."""
    return Project(output.resolve() / DOWNLOADS)


def create(name: str, output: Path = OUTPUT) -> Project:
    created = _unused(name, output)
    make_folder(output)
    with storage_errors(created.root):
        created.root.mkdir()
    return created


def find(name: str, output: Path = OUTPUT) -> Project:
    """Return an existing project."""
    match = project(name, output)
    if not match.root.is_dir():
        raise ProjectError("no_project", match.name, ", ".join(list_projects(output)) or "–")
    return match


def last_used(output: Path = OUTPUT) -> str:
    """Return the name of the project that changed last, as one with an active run does; nothing without any."""
    return max(list_projects(output), key=lambda name: _changed(output / name), default="")


def _changed(root: Path) -> float:
    """Return when a project changed last: its database, a folder such as that of its clips, or one of its runs."""
    times = [0.0]
    for path in (root, *root.glob("*"), *root.glob("runs/*")):
        with contextlib.suppress(OSError):  # it may just have been removed
            times.append(path.lstat().st_mtime)
    return max(times)


def _unused(name: str, output: Path, renamed: str = "") -> Project:
    """Return the project of a new name; raise when another one than ``renamed`` has it."""
    name = validate_name(name)
    resolve_inside(output, name)
    taken = same_folder(name, output)
    if taken and (taken != renamed or taken == name):
        raise ProjectError("project_exists" if taken == name else "other_case", name, taken)
    return Project(output.resolve() / name)  # resolving the name too would give its old capital letters on Windows


def duplicate(source: Project, name: str, output: Path, report: Report = ignore) -> Project:
    """Copy a project under a new name; large files are hard links where possible."""
    target = _unused(name, output)
    runs.require_idle(source)
    files = list(_files(source.root))
    can_link = source.root.stat().st_dev == output.stat().st_dev and hasattr(os, "link")
    copied = [path for path in files if not (can_link and _is_shared(path))]
    require_space(target.root, sum(path.lstat().st_size for path in copied))
    new = output / f".{target.name}.copy-{time.time_ns()}"
    try:
        with storage_errors(target.root):
            _copy(files, source.root, new, report)
            _update_base_paths(new, source.root, target.root)
            _unused(name, output)  # it may have been created meanwhile
            retry_while_in_use(lambda: new.rename(target.root))
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise
    return target


def rename(source: Project, name: str, output: Path = OUTPUT) -> Project:
    before = source.root
    target = _unused(name, output, before.name)
    with _idle(source):
        _move(before, target.root)
    _update_base_paths(target.root, before, target.root)
    return target


def delete(source: Project, output: Path = OUTPUT) -> DeletedProject:
    """Move a project to the trash."""
    now = time.time_ns()
    make_folder(output / TRASH)
    target = output / TRASH / f"{now}-{source.name}"
    with _idle(source):
        _move(source.root, target)
    return DeletedProject(target, source.name, now / 1e9)


def list_deleted(output: Path) -> list[DeletedProject]:
    """List the deleted projects, newest first."""
    matches = [(path, DELETED.fullmatch(path.name)) for path in (output / TRASH).glob("*")]
    deleted = [DeletedProject(path, match["name"], int(match["time"]) / 1e9) for path, match in matches if match]
    return sorted(deleted, key=lambda project: project.time, reverse=True)


def restore(identifier: str, output: Path = OUTPUT) -> Project:
    """Restore a deleted project, with a number in its name when the name is taken."""
    deleted = {project.id: project for project in list_deleted(output)}
    if identifier not in deleted:
        raise ProjectError("not_in_trash")
    name = deleted[identifier].name
    number = 2
    while same_folder(name, output):
        name = f"{deleted[identifier].name}-{number}"
        number += 1
    target = project(name, output)
    _move(resolve_inside(output / TRASH, identifier), target.root)
    return target


def empty_trash(output: Path, *, days: float = 0.0) -> int:
    """Permanently delete projects that were deleted some days ago, and remains of crashed copies; return how many."""
    expired = [deleted for deleted in list_deleted(output) if time.time() - deleted.time >= days * DAY]
    for deleted in expired:
        remove_folder(deleted.folder)
    for path in output.glob(".*.copy-*"):
        if COPYING.fullmatch(path.name) and time.time() - path.stat().st_mtime > DAY:
            shutil.rmtree(path, ignore_errors=True)
    return len(expired)


@contextlib.contextmanager
def _idle(target: Project) -> Iterator[None]:
    """Make sure that no run is active and that none starts meanwhile."""
    make_folder(target.runs)
    with contextlib.ExitStack() as stack:
        stack.enter_context(runs.lock(target))
        runs.require_idle(target)
        if sys.platform == "win32":
            stack.close()  # Windows cannot rename a folder with an open file
        yield


def _move(source: Path, target: Path) -> None:
    try:
        retry_while_in_use(lambda: source.rename(target))
    except OSError as error:
        raise ProjectError("not_movable", str(source), str(error.strerror)) from error


def _files(root: Path) -> Iterator[Path]:
    """Yield every file and link except temporary ones."""
    for folder, subfolders, names in os.walk(root):
        links = [name for name in subfolders if Path(folder, name).is_symlink()]
        subfolders[:] = sorted(name for name in subfolders if name not in links and not TEMPORARY.fullmatch(name))
        yield from (Path(folder, name) for name in sorted([*names, *links]) if not TEMPORARY.fullmatch(name))


def _is_shared(path: Path) -> bool:
    return path.suffix.lower() in SHARED and not path.is_symlink()


def _copy(files: list[Path], root: Path, new: Path, report: Report) -> None:
    new.mkdir()
    for path in counted(files, report):
        target = new / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.is_symlink():
            target.symlink_to(path.readlink())
        elif _is_shared(path):
            link_or_copy(path, target)
        elif path.name == DATABASE:
            _copy_database(path, target)
        elif path.name != SEAL:
            shutil.copy2(path, target)


def _copy_database(path: Path, target: Path) -> None:
    """Copy one consistent state, even while clips are edited."""
    with Store(path.parent).reading() as source, contextlib.closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
    if (path.parent / SEAL).is_file():
        Store(target.parent).seal()


def _update_base_paths(root: Path, before: Path, after: Path) -> None:
    """Update the path of the base model in runs whose base is in the project itself."""
    for base in root.glob("runs/*/base.json"):
        with contextlib.suppress(ValueError):  # a damaged one stays as it is
            stored = read_document(base)
            folder = stored["folder"].replace(f"{before.as_posix()}/", f"{after.as_posix()}/")
            if folder != stored["folder"]:
                write_document(base, stored | {"folder": folder})
