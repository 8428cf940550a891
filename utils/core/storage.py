"""Writing that survives a crash: whole files or none, and locks that die with their holder."""

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
NO_SPACE_HINT = "Free some space or choose another folder; what was there before is untouched."
RETRY_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)  # seconds; virus scanners let go within this time


def write_atomically(path: Path, text: str) -> None:
    """Replace a text file as a whole; on any failure the old one is left as it was."""
    with atomic_writer(path) as file:
        file.write(text.encode())


@contextlib.contextmanager
def atomic_writer(path: Path) -> Iterator[BinaryIO]:
    """Open a file that takes the place of another only once it is complete and on disk."""
    temporary: Path | None = None
    try:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{PARTIAL}")
        with temporary.open("xb") as file:  # not mkstemp, whose files nobody else may read
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
    """Make a folder with its parents."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error


def make_unique_folder(wanted: Path) -> Path:
    """Make a folder that nobody else has: if there is one of that name, with a number behind it."""
    make_folder(wanted.parent)
    folder, number = wanted, 2
    while True:
        try:
            folder.mkdir()
        except FileExistsError:
            folder, number = wanted.with_name(f"{wanted.name}-{number}"), number + 1
        except OSError as error:
            raise storage_error(folder, error) from error
        else:
            return folder


def timestamp_name(when: float) -> str:
    """Name a moment, given in seconds since 1970, so that later ones come later in a list."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(when))}-{int(when % 1 * 1000):03}"


def read_text(path: Path) -> str:
    """Read a file that another process may be replacing at this moment."""
    return retry_while_in_use(lambda: path.read_text(encoding="utf-8"))


def read_json(path: Path) -> Any:  # noqa: ANN401  # whatever the file holds
    """Read a JSON file; whatever makes it unreadable is a ValueError, brackets without end too."""
    try:
        return json.loads(read_text(path))
    except RecursionError as error:
        raise ValueError("its brackets lie too deep in one another") from error


def retry_while_in_use(action: Callable[[], T]) -> T:
    """Try again while Windows refuses access because somebody else has the file open for an instant."""
    for pause in RETRY_SECONDS:
        try:
            return action()
        except PermissionError:
            if sys.platform != "win32":
                raise
            time.sleep(pause)
    return action()


def storage_error(path: Path, error: OSError) -> StorageError:
    """Say why a file could not be written, and what to do about it."""
    return StorageError(f"{path} cannot be written: {error.strerror or error}.", hint=NO_SPACE_HINT)


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold a lock between threads and processes; the system frees it when its holder dies."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise storage_error(path, error) from error
    try:
        _acquire(descriptor)
        yield
    finally:
        os.close(descriptor)  # closing frees the lock on every system


if sys.platform == "win32":
    import msvcrt

    def _acquire(descriptor: int) -> None:
        while True:
            try:
                return msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)  # gives up after ten seconds, so ask again
            except OSError as error:
                if error.errno != errno.EDEADLK:
                    raise
else:
    import fcntl

    def _acquire(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
