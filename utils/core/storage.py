"""Crash-safe files: written completely or not at all, and locks that the system frees when their holder dies."""

import contextlib
import errno
import json
import os
import secrets
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from utils.core.errors import StorageError

T = TypeVar("T")
PARTIAL = ".partial"
NO_SPACE_HINT = "Free some space or choose another folder. Existing files are unchanged."
RETRY_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)  # virus scanners close a file within this time


def write_atomically(path: Path, text: str) -> None:
    """Replace a text file; on any failure the old one is unchanged."""
    with atomic_writer(path) as file:
        file.write(text.encode())


@contextlib.contextmanager
def atomic_writer(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces another once it is complete and on disk."""
    temporary: Path | None = None
    try:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{PARTIAL}")
        with temporary.open("xb") as file:  # not mkstemp, whose files only their owner can read
            yield file
            file.flush()
            os.fsync(file.fileno())
        retry_while_in_use(lambda: temporary.replace(path))
    except BaseException as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise storage_error(path, error) from error
        raise


def make_folder(path: Path) -> None:
    """Create a folder with its parents."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error


def make_unique_folder(path: Path) -> Path:
    """Create a new folder; append a number to its name if it exists already."""
    make_folder(path.parent)
    folder, number = path, 2
    while True:
        try:
            folder.mkdir()
        except FileExistsError:
            folder, number = path.with_name(f"{path.name}-{number}"), number + 1
        except OSError as error:
            raise storage_error(folder, error) from error
        else:
            return folder


def timestamp_name(seconds: float) -> str:
    """Format a time, in seconds since 1970, as a file name that sorts by time."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(seconds))}-{int(seconds % 1 * 1000):03}"


def read_text(path: Path) -> str:
    """Read a text file that another process may be replacing right now."""
    return retry_while_in_use(lambda: path.read_text(encoding="utf-8"))


def read_json(path: Path) -> Any:  # noqa: ANN401  # any JSON value
    """Read a JSON file; malformed content of any kind raises ValueError."""
    try:
        return json.loads(read_text(path))
    except RecursionError as error:
        raise ValueError("too deeply nested") from error


def retry_while_in_use(action: Callable[[], T]) -> T:
    """Retry while Windows refuses access because another program has the file open."""
    for pause in RETRY_SECONDS:
        try:
            return action()
        except PermissionError:
            if sys.platform != "win32":
                raise
            time.sleep(pause)
    return action()


def storage_error(path: Path, error: OSError) -> StorageError:
    """Turn a failed write into an error for the user."""
    return StorageError(f"{path} cannot be written: {error.strerror or error}.", hint=NO_SPACE_HINT)


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold a lock across threads and processes; the system frees it when its holder dies."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        _acquire(descriptor)
        yield
    finally:
        os.close(descriptor)  # which frees the lock on every system


if sys.platform == "win32":
    import msvcrt

    def _acquire(descriptor: int) -> None:
        while True:
            try:
                return msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)  # gives up after ten seconds
            except OSError as error:
                if error.errno != errno.EDEADLK:
                    raise
else:
    import fcntl

    def _acquire(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
