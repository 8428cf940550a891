"""Crash-safe folders: written completely or not at all.

A folder is written under a hidden name, then renamed. A kill can leave hidden folders beside ``step_5``:
``.step_5.new-TIME`` was being written, ``.step_5.old-TIME`` was being replaced, ``.step_5.gone-TIME`` was being
deleted. There are two ways to write a folder. ``replace_folder`` suits any folder: its next call restores the old one
where a kill came between the renames. ``write_folder`` also writes a manifest with the size and hash of every file, so
that ``newest_complete`` always finds the newest complete version.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from utils.core.errors import DamagedError, FileDamagedError, UndeletableError
from utils.core.storage import (
    PARTIAL,
    cached_while_unchanged,
    hash_json,
    make_folder,
    read_json,
    require_space,
    retry_while_in_use,
    storage_errors,
    write_atomically,
)

Digests = dict[str, str]

LEFTOVER = re.compile(r"\.(?P<name>.+)\.(?P<kind>new|old|gone)-\d+")
FORMAT = 2  # of manifests
DIGEST = "digest"  # key of a manifest's hash of itself


@contextlib.contextmanager
def replace_folder(path: Path, ours: Collection[str] | None = None) -> Iterator[Path]:
    """Give an empty folder to fill, which then replaces another; on failure the old one is unchanged.

    Only the names in ``ours`` are replaced or deleted; all other files belong to the user and move over. With None, no
    file does.
    """
    make_folder(path.parent)
    new = _beside(path, "new")
    with storage_errors(path):
        try:
            _restore(path, ours)
            new.mkdir()
            yield new
            _flush(new)
            _swap(new, path)
            _restore(path, ours)
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

    ``fill`` writes the files and returns the SHA-256 of those that it has hashed while writing. ``about`` goes into the
    manifest too.
    """
    make_folder(target.parent)
    has_previous = repair(target, manifest)
    require_space(target, needed)
    serial = 1 + int(read_manifest(target, manifest)["serial"]) if has_previous else 1
    with replace_folder(target) as new:
        seal(new, manifest, about, fill(new), serial)
    return target


def seal(
    folder: Path, manifest: str, about: Mapping[str, Any], digests: Mapping[str, str] | None = None, serial: int = 1
) -> None:
    """Write the manifest of a folder that is complete, with the size and the SHA-256 of each file."""
    files = {}
    for path in _flush(folder):  # before the manifest, which says that they are complete
        name = path.relative_to(folder).as_posix()
        if name != manifest:
            digest = (digests or {}).get(name) or hash_file(path)
            files[name] = {"size": path.stat().st_size, "sha256": digest}
    write_manifest(folder / manifest, {"format": FORMAT, "serial": serial, **about, "files": files})


def write_manifest(path: Path, content: Mapping[str, Any]) -> None:
    """Write what ``read_manifest`` has returned, or a new manifest, with its digest."""
    write_atomically(path, json.dumps({**content, DIGEST: hash_json(content)}, indent=1, ensure_ascii=False))


def remove_folder(target: Path) -> None:
    """Delete a folder; its name is free at once, even if some files cannot be deleted yet."""
    gone = _beside(target, "gone")
    try:
        retry_while_in_use(lambda: target.rename(gone))
    except FileNotFoundError:
        return  # another process was faster
    except OSError as error:
        raise UndeletableError(target, str(error.strerror)) from error
    shutil.rmtree(gone, ignore_errors=True)


def repair(target: Path, manifest: str) -> bool:
    """Put the newest complete version in place and delete what a kill has left; only the writer may call this.

    Returns whether there is a complete version.
    """
    newest = newest_complete(target, manifest)
    if newest is not None and newest != target:
        _swap(newest, target)
    for path, _ in _leftovers(target):
        shutil.rmtree(path, ignore_errors=True)  # Windows cannot delete what is open; the next call does
    return newest is not None


def repair_all(parent: Path, manifest: str) -> None:
    """Repair every folder in a parent, and delete half-written files."""
    matches = (LEFTOVER.fullmatch(path.name) for path in parent.glob(".*"))
    for name in {match["name"] for match in matches if match}:
        repair(parent / name, manifest)
    for path in parent.glob(f".*{PARTIAL}"):
        path.unlink(missing_ok=True)


def newest_complete(target: Path, manifest: str) -> Path | None:
    """Find the newest complete version of a folder, in place or beside it, without changing anything."""
    serials = {}
    for path in (target, *(path for path, kind in _leftovers(target) if kind != "gone")):
        with contextlib.suppress(DamagedError):
            serials[path] = int(read_manifest(path, manifest)["serial"])
    return max(serials, key=serials.__getitem__, default=None)


def read_manifest(folder: Path, manifest: str) -> dict[str, Any]:
    """Read the manifest of a folder and check the sizes of its files."""
    about = read_signed_manifest(folder / manifest)
    for name, file in about["files"].items():
        try:
            actual = (folder / name).stat().st_size
        except OSError as error:
            raise FileDamagedError(folder / name, "missing") from error
        if actual != file["size"]:
            raise FileDamagedError(folder / name, "size")
    return about


def read_signed_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest without looking at its files."""
    try:
        about = read_json(path)
        version = about["format"]
        files = about["files"].items()
        is_complete = all(file["sha256"] and int(file["size"]) >= 0 for _, file in files)
        int(about["serial"])
        digest = about.pop(DIGEST, None)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        is_missing = isinstance(error, FileNotFoundError)
        raise FileDamagedError(path, "missing" if is_missing else "unreadable") from error
    if version != FORMAT:
        raise FileDamagedError(path, "format")
    if not is_complete or digest != hash_json(about):
        raise FileDamagedError(path)
    return dict(about)


def verify_hashes(folder: Path, manifest: str, names: Iterable[str] = ()) -> None:
    """Compare the content of files with the manifest; all files unless some are named."""
    files = read_manifest(folder, manifest)["files"]
    for name in names or files:
        if name not in files or hash_file(folder / name) != files[name]["sha256"]:
            raise FileDamagedError(folder / name)


def hash_file(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileDamagedError(path, "unreadable") from error


@cached_while_unchanged(1024)
def hash_once(path: Path) -> str:
    """Hash a file again only when its size or time has changed."""
    return hash_file(path)


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
    if not target.parent.is_dir():
        return []
    matches = ((path, LEFTOVER.fullmatch(path.name)) for path in sorted(target.parent.iterdir()))
    return [(path, match["kind"]) for path, match in matches if match and match["name"] == target.name]
