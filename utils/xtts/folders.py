"""Replacing a whole folder: the old one stays until the new one is complete and on disk."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path

from utils.core.folders import sync_folder
from utils.core.storage import PARTIAL, make_folder, retry_while_in_use, storage_error


@contextlib.contextmanager
def replacing_folder(path: Path, ours: Collection[str] | None = None) -> Iterator[Path]:
    """Give an empty folder to fill, which then takes the place of another.

    Two renames make the change; whoever is killed between them finds the old folder put back at the next call.

    Args:
        path: The folder to replace.
        ours: Names of files that are replaced or go; others are somebody's own and move over. None: all go.
    """
    make_folder(path.parent)
    before = path.parent / f".{path.name}.before"
    new: Path | None = None
    try:
        _clear(before, path, ours)
        new = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=PARTIAL, dir=path.parent))
        yield new
        flush(new)
        new.chmod(0o755)  # mkdtemp makes it readable for its owner alone
        if path.exists():
            retry_while_in_use(lambda: path.rename(before))
        retry_while_in_use(lambda: new.rename(path))
        _clear(before, path, ours)
    except OSError as error:
        raise storage_error(path, error) from error
    finally:
        if new is not None:
            shutil.rmtree(new, ignore_errors=True)


def _clear(before: Path, path: Path, ours: Collection[str] | None) -> None:
    """Put the old folder back where no new one came, or else remove it, save for what is not ours."""
    if not before.exists():
        return
    if not path.exists():
        before.rename(path)
        return
    for entry in list(before.iterdir()) if ours is not None else []:
        if entry.name not in (ours or ()) and not (path / entry.name).exists():
            entry.rename(path / entry.name)
    shutil.rmtree(before, ignore_errors=True)  # what cannot be removed now is removed at the next call


def flush(folder: Path) -> None:
    """Wait until every file of a folder is on the disk itself."""
    for path in folder.iterdir():
        with path.open("rb" if os.name == "posix" else "rb+") as file:  # a second name of a read-only file is one too
            os.fsync(file.fileno())
    sync_folder(folder)


def share(source: Path, target: Path) -> None:
    """Point to a file that stays where it is, or copy it where the system has no links."""
    if target.exists() and _same(source, target):
        return
    target.unlink(missing_ok=True)
    try:
        target.symlink_to(source.resolve())
    except OSError:
        shutil.copy2(source, target)


def _same(source: Path, target: Path) -> bool:
    one, other = source.stat(), target.stat()
    return source.samefile(target) or (one.st_size, one.st_mtime_ns) == (other.st_size, other.st_mtime_ns)
