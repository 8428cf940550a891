"""Folders that appear whole or not at all: filled beside their place, then renamed into it.

Beside ``step_5`` may lie, hidden by their dot, what a kill has left: ``.step_5.new-TIME`` (being filled),
``.step_5.old-TIME`` (being replaced) and ``.step_5.gone-TIME`` (being deleted). A folder is whole once it holds its
manifest, which is written last and names every file with its size and hash. So at every moment the newest whole folder
can be found, and ``mend`` puts it where it belongs.
"""

import contextlib
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from utils.core.errors import StorageError
from utils.core.paths import TINY_MODEL
from utils.core.storage import (
    NO_SPACE_HINT,
    PARTIAL,
    make_folder,
    read_json,
    retry_while_in_use,
    storage_error,
    write_atomically,
)

FORMAT = 1
LEFT = re.compile(r"\.(?P<name>.+)\.(?P<kind>new|old|gone)-\d+")
SPARE = 1.01  # file systems keep a little for themselves
SMALL_FILES = 1 << 18  # bytes kept for the JSON beside the tensors
FEWER = (
    "Free some space, delete checkpoints (python -m utils checkpoints delete) or keep fewer with save_n_checkpoints; "
    "what was saved before is untouched."
)
CHOOSE_ANOTHER = "Choose another one; this one cannot be mended."

Digests = dict[str, str]
Fill = Callable[[Path], Digests]


class DamagedError(StorageError):
    """A folder does not hold what was written."""


def write_folder(target: Path, manifest: str, fill: Fill, about: Mapping[str, Any], *, needed: int) -> Path:
    """Fill a folder and put it in the place of the one that is there; on any failure that one stays as it was.

    Args:
        target: Where it shall lie.
        manifest: Name of its manifest, a JSON file.
        fill: Writes the files; returns the SHA-256 of those that it hashed on the way.
        about: What the manifest shall hold besides.
        needed: Bytes that will be written.
    """
    make_folder(target.parent)
    repair(target, manifest)
    require_space(target, needed, FEWER)
    new = _beside(target, "new")
    try:
        new.mkdir()
        digests = fill(new)
        serial = 1 + (read_manifest(target, manifest)["serial"] if is_complete(target, manifest) else 0)
        _seal(new, manifest, {"format": FORMAT, "serial": serial, **about}, digests)
        swap_in(new, target)
    except BaseException as error:
        shutil.rmtree(new, ignore_errors=True)  # the error below says why; what is left is swept next time
        if isinstance(error, OSError):
            raise storage_error(target, error) from error
        raise
    return target


def swap_in(new: Path, target: Path) -> None:
    """Let a whole folder take the place of another; one of them is always there to be found."""
    old = _beside(target, "old")
    if target.exists():
        retry_while_in_use(lambda: target.rename(old))
    try:
        retry_while_in_use(lambda: new.rename(target))
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    sync_folder(target.parent)
    shutil.rmtree(old, ignore_errors=True)  # what Windows keeps open is swept next time


def remove_folder(target: Path) -> None:
    """Delete a folder; it is gone at once, whatever becomes of its files."""
    gone = _beside(target, "gone")
    try:
        retry_while_in_use(lambda: target.rename(gone))
    except FileNotFoundError:
        return  # somebody else was faster
    except OSError as error:
        raise StorageError(f"{target} cannot be deleted: {error.strerror}.", hint="Close what has it open.") from error
    shutil.rmtree(gone, ignore_errors=True)


def repair(target: Path, manifest: str) -> None:
    """Put the newest whole folder of this name in its place and sweep what a kill has left; for its writer alone."""
    newest = newest_complete(target, manifest)
    if newest is not None and newest != target:
        swap_in(newest, target)
    for path, _ in _left_of(target):
        shutil.rmtree(path, ignore_errors=True)


def repair_all(parent: Path, manifest: str) -> None:
    """Mend every folder of a parent, and sweep half-written files too."""
    found = (LEFT.fullmatch(path.name) for path in parent.glob(".*"))
    for name in {match["name"] for match in found if match}:
        repair(parent / name, manifest)
    for path in parent.glob(f".*{PARTIAL}"):
        path.unlink(missing_ok=True)


def newest_complete(target: Path, manifest: str) -> Path | None:
    """Find the newest whole folder of this name, in its place or beside it, and change nothing."""
    paths = (target, *(path for path, kind in _left_of(target) if kind != "gone"))
    whole = [path for path in paths if is_complete(path, manifest)]
    return max(whole, key=lambda path: int(read_manifest(path, manifest)["serial"]), default=None)


def is_complete(folder: Path, manifest: str) -> bool:
    """Tell whether everything that the manifest names is there in its full size."""
    try:
        read_manifest(folder, manifest)
    except DamagedError:
        return False
    return True


def read_manifest(folder: Path, manifest: str) -> dict[str, Any]:
    """Read the manifest of a folder, or say what is wrong with the folder."""
    path = folder / manifest
    try:
        about = read_json(path)
        version, files = about["format"], about["files"].items()
        sizes = {name: int(file["size"]) for name, file in files if file["sha256"]}
        int(about["serial"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise DamagedError(f"{path} cannot be read: {type(error).__name__} {error}.", hint=CHOOSE_ANOTHER) from error
    if version != FORMAT:
        raise DamagedError(f"{path} has format {version}; this version reads {FORMAT}.", hint="Use the same version.")
    for name, size in sizes.items():
        found = _size(folder / name)
        if found != size:
            state = "is missing" if found is None else f"has {found} bytes instead of {size}"
            raise DamagedError(f"{folder / name} {state}.", hint=CHOOSE_ANOTHER)
    return dict(about)


def verify_hashes(folder: Path, manifest: str, names: Iterable[str] = ()) -> None:
    """Read the files again and compare them with what was written; all of them unless some are named."""
    files = read_manifest(folder, manifest)["files"]
    for name in names or files:
        if name not in files or hash_file(folder / name) != files[name]["sha256"]:
            raise DamagedError(
                f"{folder / name} does not hold what was written to it.",
                hint="Choose another one, and have the disk checked.",
            )


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DamagedError(f"{path} cannot be read: {error.strerror}.", hint=CHOOSE_ANOTHER) from error


def require_space(target: Path, needed: int, hint: str = NO_SPACE_HINT) -> None:
    """Refuse to begin writing what the disk has no room for."""
    make_folder(target.parent)
    wanted = math.ceil(needed * SPARE) + SMALL_FILES
    free = shutil.disk_usage(target.parent).free
    if free < wanted:
        raise StorageError(f"{target} needs {_megabytes(wanted)}, and {_megabytes(free)} are free.", hint=hint)


def link_or_copy(source: Path, target: Path) -> None:
    """Give a file that nobody changes a second name, or copy it where the system cannot; it outlives the first name.

    What belongs to the program is copied: whoever writes into a finished model shall not write into the program.
    """
    origin = source.resolve()
    if origin.is_relative_to(TINY_MODEL) or not _linked(origin, target):
        known = origin.stat()
        require_space(target, known.st_size)
        shutil.copyfile(origin, target)  # without its rights: a copy of what may only be read may be written
        os.utime(target, ns=(known.st_atime_ns, known.st_mtime_ns))


def _linked(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError:  # another disk, or a file system without second names
        return False
    return True


def link_or_copy_atomically(source: Path, target: Path) -> None:
    """Put a file that nobody changes where it is kept, whole or not at all; see ``link_or_copy``."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        link_or_copy(source, temporary)
        retry_while_in_use(lambda: temporary.replace(target))
    except OSError as error:
        raise storage_error(target, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut; Windows has no such call and keeps them itself."""
    if sys.platform != "win32":
        with _opened(folder) as descriptor:
            os.fsync(descriptor)


def _seal(folder: Path, manifest: str, about: Mapping[str, Any], digests: Digests) -> None:
    """Bring every file to the disk, then write the manifest."""
    files = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with _opened(path, os.O_RDWR) as descriptor:
            os.fsync(descriptor)
        name = path.relative_to(folder).as_posix()
        files[name] = {"size": path.stat().st_size, "sha256": digests.get(name) or hash_file(path)}
    write_atomically(folder / manifest, json.dumps({**about, "files": files}, indent=1, ensure_ascii=False))
    sync_folder(folder)


@contextlib.contextmanager
def _opened(path: Path, flags: int = os.O_RDONLY) -> Iterator[int]:
    descriptor = os.open(path, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _beside(target: Path, kind: str) -> Path:
    """Name a hidden folder beside a target; by the clock, because process numbers come again in containers."""
    return target.with_name(f".{target.name}.{kind}-{time.time_ns()}")


def _left_of(target: Path) -> list[tuple[Path, str]]:
    """List what lies hidden beside a target, with its kind."""
    if not target.parent.is_dir():
        return []
    found = ((path, LEFT.fullmatch(path.name)) for path in sorted(target.parent.iterdir()))
    return [(path, match["kind"]) for path, match in found if match and match["name"] == target.name]


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
