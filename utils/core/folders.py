"""Folders that appear as a whole or not at all: written under a hidden name, then renamed.

A kill can leave hidden folders beside ``step_5``: ``.step_5.new-TIME`` was being written, ``.step_5.old-TIME`` was
being replaced, ``.step_5.gone-TIME`` was being deleted. There are two ways to write a folder. ``replace_folder`` suits
any folder: its next call restores the old one where a kill came between the renames. ``write_folder`` also writes a
manifest with the size and hash of every file, so that ``newest_complete`` always finds the newest complete version.
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
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
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
LEFTOVER = re.compile(r"\.(?P<name>.+)\.((?P<kind>new|old|gone)-\d+|before)")  # .before was written by version 1.0
RESERVE = 1.01  # file systems need a little for themselves
JSON_RESERVE = 1 << 18  # bytes for the JSON files beside the tensors
FREE_SPACE_HINT = (
    "Free some space, delete checkpoints (python -m utils checkpoints delete) or set a smaller save_n_checkpoints. "
    "What was saved before is unchanged."
)
CHOOSE_ANOTHER = "Choose another one; this one cannot be repaired."

Digests = dict[str, str]


class DamagedError(StorageError):
    """A folder does not contain what was written to it."""


@contextlib.contextmanager
def replace_folder(path: Path, ours: Collection[str] | None = None) -> Iterator[Path]:
    """Give an empty folder to fill, which then replaces another; on failure the old one is unchanged.

    Args:
        path: The folder to replace.
        ours: Names that are replaced or deleted; all other files belong to the user and move over. None: no file does.
    """
    make_folder(path.parent)
    new = _beside(path, "new")
    try:
        _restore(path, ours)
        new.mkdir()
        yield new
        _flush(new)
        _swap(new, path)
        _restore(path, ours)
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _restore(path: Path, ours: Collection[str] | None) -> None:
    """Put the old folder back where no new one took its place; otherwise delete it, except for the user's files."""
    for old in (leftover for leftover, kind in _leftovers(path) if kind == "old"):
        if not path.exists():
            old.rename(path)
            continue
        for entry in list(old.iterdir()) if ours is not None else []:
            if entry.name not in (ours or ()) and not (path / entry.name).exists():
                entry.rename(path / entry.name)
        shutil.rmtree(old, ignore_errors=True)  # the next call deletes what cannot be deleted now


def write_folder(
    target: Path, manifest: str, fill: Callable[[Path], Digests], about: Mapping[str, Any], *, needed: int
) -> Path:
    """Write a folder with a manifest, which replaces the one that is there; on failure that one is unchanged.

    Args:
        target: The folder.
        manifest: Name of its manifest, a JSON file.
        fill: Writes the files; returns the SHA-256 of those that it has hashed while writing.
        about: What else the manifest contains.
        needed: Bytes that will be written.
    """
    make_folder(target.parent)
    repair(target, manifest)
    require_space(target, needed, FREE_SPACE_HINT)
    new = _beside(target, "new")
    try:
        new.mkdir()
        digests = fill(new)
        serial = 1 + (read_manifest(target, manifest)["serial"] if is_complete(target, manifest) else 0)
        _seal(new, manifest, {"format": FORMAT, "serial": serial, **about}, digests)
        _swap(new, target)
    except BaseException as error:
        shutil.rmtree(new, ignore_errors=True)  # the error below says why; leftovers are deleted next time
        if isinstance(error, OSError):
            raise storage_error(target, error) from error
        raise
    _delete_leftovers(target)
    return target


def remove_folder(target: Path) -> None:
    """Delete a folder; its name is free at once, even if some files cannot be deleted yet."""
    gone = _beside(target, "gone")
    try:
        retry_while_in_use(lambda: target.rename(gone))
    except FileNotFoundError:
        return  # another process was faster
    except OSError as error:
        raise StorageError(
            f"{target} cannot be deleted: {error.strerror}.", hint="Close the programs that use it."
        ) from error
    shutil.rmtree(gone, ignore_errors=True)


def repair(target: Path, manifest: str) -> None:
    """Put the newest complete version in place and delete what a kill has left; only the writer may call this."""
    newest = newest_complete(target, manifest)
    if newest is not None and newest != target:
        _swap(newest, target)
    _delete_leftovers(target)


def repair_all(parent: Path, manifest: str) -> None:
    """Repair every folder in a parent, and delete half-written files."""
    matches = (LEFTOVER.fullmatch(path.name) for path in parent.glob(".*"))
    for name in {match["name"] for match in matches if match}:
        repair(parent / name, manifest)
    for path in parent.glob(f".*{PARTIAL}"):
        path.unlink(missing_ok=True)


def newest_complete(target: Path, manifest: str) -> Path | None:
    """Find the newest complete version of a folder, in place or beside it, without changing anything."""
    paths = (target, *(path for path, kind in _leftovers(target) if kind != "gone"))
    complete = [path for path in paths if is_complete(path, manifest)]
    return max(complete, key=lambda path: int(read_manifest(path, manifest)["serial"]), default=None)


def is_complete(folder: Path, manifest: str) -> bool:
    """Tell whether every file of the manifest is there in its full size."""
    try:
        read_manifest(folder, manifest)
    except DamagedError:
        return False
    return True


def read_manifest(folder: Path, manifest: str) -> dict[str, Any]:
    """Read the manifest of a folder and check the sizes of its files."""
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
        actual = _size(folder / name)
        if actual != size:
            problem = "is missing" if actual is None else f"has {actual} bytes instead of {size}"
            raise DamagedError(f"{folder / name} {problem}.", hint=CHOOSE_ANOTHER)
    return dict(about)


def verify_hashes(folder: Path, manifest: str, names: Iterable[str] = ()) -> None:
    """Compare the content of files with the manifest; all files unless some are named."""
    files = read_manifest(folder, manifest)["files"]
    for name in names or files:
        if name not in files or hash_file(folder / name) != files[name]["sha256"]:
            raise DamagedError(
                f"{folder / name} has changed since it was written.", hint="Choose another one and check the disk."
            )


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DamagedError(f"{path} cannot be read: {error.strerror}.", hint=CHOOSE_ANOTHER) from error


def require_space(target: Path, needed: int, hint: str = NO_SPACE_HINT) -> None:
    """Refuse to start writing what does not fit on the disk."""
    make_folder(target.parent)
    wanted = math.ceil(needed * RESERVE) + JSON_RESERVE
    free = shutil.disk_usage(target.parent).free
    if free < wanted:
        raise StorageError(f"{target} needs {_megabytes(wanted)}, and {_megabytes(free)} are free.", hint=hint)


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link a file that never changes, or copy it where the system cannot link.

    Files of the program itself are always copied, so that writing to a finished model cannot change the program.
    """
    origin = source.resolve()
    if origin.is_relative_to(TINY_MODEL) or not _hard_link(origin, target):
        status = origin.stat()
        require_space(target, status.st_size)
        shutil.copyfile(origin, target)  # without its permissions: the copy of a read-only file is writable
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def link_or_copy_atomically(source: Path, target: Path) -> None:
    """The same, so that the target appears as a whole or not at all; an existing one is replaced."""
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}{PARTIAL}")
    try:
        link_or_copy(source, temporary)
        retry_while_in_use(lambda: temporary.replace(target))
    except OSError as error:
        raise storage_error(target, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def symlink_or_copy(source: Path, target: Path) -> None:
    """Point to a file that stays where it is, or copy it where the system has no links."""
    if target.exists() and _is_same(source, target):
        return
    target.unlink(missing_ok=True)
    try:
        target.symlink_to(source.resolve())
    except OSError:
        shutil.copy2(source, target)


def _is_same(source: Path, target: Path) -> bool:
    one, other = source.stat(), target.stat()
    return source.samefile(target) or (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)


def _hard_link(source: Path, target: Path) -> bool:
    try:
        os.link(source, target)
    except OSError:  # another disk, or a file system without hard links
        return False
    return True


def _swap(new: Path, target: Path) -> None:
    """Put a complete folder in the place of another, which stays beside it; one of them can always be found."""
    old = _beside(target, "old")
    if target.exists():
        retry_while_in_use(lambda: target.rename(old))
    try:
        retry_while_in_use(lambda: new.rename(target))
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    _sync_folder(target.parent)


def _seal(folder: Path, manifest: str, about: Mapping[str, Any], digests: Digests) -> None:
    """Bring every file to the disk, then write the manifest."""
    files = {}
    for path in _flush(folder):
        name = path.relative_to(folder).as_posix()
        files[name] = {"size": path.stat().st_size, "sha256": digests.get(name) or hash_file(path)}
    write_atomically(folder / manifest, json.dumps({**about, "files": files}, indent=1, ensure_ascii=False))
    _sync_folder(folder)


def _flush(folder: Path) -> list[Path]:
    """Wait until every file of a folder is on the disk itself; return the files."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        with path.open("rb" if os.name == "posix" else "rb+") as file:  # a link to a read-only file is read-only too
            os.fsync(file.fileno())
    _sync_folder(folder)
    return files


def _sync_folder(folder: Path) -> None:
    """Make renames in a folder survive a power cut; Windows does so itself."""
    if sys.platform != "win32":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _beside(target: Path, kind: str) -> Path:
    """Name a hidden folder beside a target; by time, because containers reuse process ids."""
    return target.with_name(f".{target.name}.{kind}-{time.time_ns()}")


def _leftovers(target: Path) -> list[tuple[Path, str]]:
    """List the hidden folders beside a target with their kind."""
    if not target.parent.is_dir():
        return []
    matches = ((path, LEFTOVER.fullmatch(path.name)) for path in sorted(target.parent.iterdir()))
    return [(path, match["kind"] or "old") for path, match in matches if match and match["name"] == target.name]


def _delete_leftovers(target: Path) -> None:
    for path, _ in _leftovers(target):
        shutil.rmtree(path, ignore_errors=True)  # Windows cannot delete what is open; the next call does


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
