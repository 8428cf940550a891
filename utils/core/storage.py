"""Files that are written completely or not at all, and locks that the system frees when their holder dies."""

import contextlib
import errno
import functools
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

from utils.core.errors import AccessDeniedError, DiskFullError, NoSpaceError, StorageError, UnwritableError
from utils.core.facts import FileIgnored, log_fact
from utils.core.paths import TINY_MODEL

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

PARTIAL = ".partial"
SIGNED_START = b"# sha256: "
SIGNED_END = b"# end\n"
SIGNED_LINE = re.compile(rb"^\s*# (sha|end\s*$)|[0-9a-f]{4} \(if|\x00", re.MULTILINE)
SIGNED = re.compile(SIGNED_START + rb"(\S+) [^\n]*\n(.*)" + SIGNED_END, re.DOTALL)
RETRY_SECONDS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.4)  # virus scanners close a file within this time
RESERVE = 1.01  # file systems need a little for themselves
JSON_RESERVE = 1 << 18  # bytes for the JSON files beside the tensors
MAX_GROWTH = 4  # of an archive with weights when it is read; their silent parts take hardly any space

WRITE_ERRORS = {
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), AccessDeniedError),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), DiskFullError),
}


def storage_error(path: Path, error: OSError) -> StorageError:
    """Turn a failed write into an error for the user."""
    return WRITE_ERRORS.get(error.errno or 0, UnwritableError)(path, error.strerror or str(error))


@contextlib.contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn every failed write within the block into an error for the user."""
    try:
        yield
    except OSError as error:
        raise storage_error(path, error) from error


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


def read_text(path: Path) -> str:
    """Read a text file that another process may be replacing right now."""
    return retry_while_in_use(lambda: path.read_text(encoding="utf-8"))


def parse_json(text: str | bytes) -> Any:  # noqa: ANN401  # any JSON value
    """Parse JSON; malformed content of any kind raises ValueError."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("too deeply nested") from error


def read_json(path: Path) -> Any:  # noqa: ANN401  # any JSON value
    """Read a JSON file; malformed content of any kind raises ValueError."""
    try:
        return parse_json(read_text(path))
    except UnicodeDecodeError as error:  # its own message would quote the whole file
        raise ValueError(f"not UTF-8 text at byte {error.start}") from error


def write_document(path: Path, content: object) -> None:
    """Replace a JSON document of the program's own, which gets a digest; on any failure the old one is unchanged."""
    write_atomically(path, document(content))


def document(content: object) -> str:
    """Return JSON values as a document with a digest."""
    return json.dumps({"digest": hash_json(content), "content": content}, ensure_ascii=False, indent=1)


def read_document(path: Path, *, may_lack_digest: bool = True) -> Any:  # noqa: ANN401  # any JSON value
    """Read a document that ``write_document`` wrote; ValueError if it has changed since.

    Version 1.1 wrote the content alone, which cannot be verified; documents that it did not have need their digest.
    """
    stored = read_json(path)
    if not isinstance(stored, dict) or not stored.keys() & {"digest", "content"}:
        if not may_lack_digest:
            raise ValueError("it has no digest")
        return stored
    if "content" not in stored:  # a report, which other programs read too
        stored = {"digest": stored.pop("digest"), "content": stored}
    if stored.keys() != {"digest", "content"} or stored["digest"] != hash_json(stored["content"]):
        raise ValueError("it has changed since it was written")
    return stored["content"]


def hash_text(text: str, size: int) -> str:
    """Hash a text to so many bytes, written in hexadecimal."""
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=size).hexdigest()


def hash_json(content: object) -> str:
    """Hash JSON values, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def sign(text: str) -> str:
    """Return a text that the program owns between two lines, the first with its digest; for YAML and lists of lines."""
    found = hashlib.sha256(text.encode()).hexdigest()
    return f"# sha256: {found} (if you edit this file, delete this line and the last one)\n{text}# end\n"


def verify_signed(content: bytes) -> bytes:
    """Return a text without the lines that ``sign`` added, if it has any; ValueError if it has changed since."""
    is_cut = bool(content) and SIGNED_START.startswith(content)
    if not is_cut and not SIGNED_LINE.search(content):
        return content
    signed = SIGNED.fullmatch(content)
    if not signed or hashlib.sha256(signed[2]).hexdigest().encode() != signed[1]:
        raise ValueError("it has changed since it was written")
    return signed[2]


def read_object(path: Path) -> dict[str, Any]:
    """Read a document that nothing depends on; a missing or damaged one reads as empty."""
    try:
        content = read_document(path)
        if not isinstance(content, dict):
            raise ValueError("it holds no object")  # noqa: TRY004, TRY301  # damaged like any other
    except (OSError, ValueError) as error:
        if path.is_file():
            log_fact(FileIgnored(path, str(error)))
        return {}
    return content


def cached_while_unchanged(maxsize: int) -> Callable[[F], F]:
    """Remember what a function returns for files, the paths among its arguments, until one of them changes."""

    def decorate(function: F) -> F:
        cached = functools.lru_cache(maxsize)(lambda _versions, *args: function(*args))

        @functools.wraps(function)
        def call(*args: Any) -> Any:  # noqa: ANN401  # as the function declares it
            return cached(tuple(file_version(each) for each in args if isinstance(each, Path)), *args)

        return cast("F", call)

    return decorate


@cached_while_unchanged(256)
def verify_archive(path: Path) -> None:
    """Compare the content of a zip archive, such as a .pth file, with its checksums, once per size and time.

    One that grows too much when it is read is refused, so that a small file cannot fill the memory.
    """
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if sum(entry.file_size for entry in entries) > MAX_GROWTH * sum(entry.compress_size for entry in entries):
            raise zipfile.BadZipFile(f"Its content is more than {MAX_GROWTH} times larger")
        if damaged := archive.testzip():
            raise zipfile.BadZipFile(f"Bad CRC-32 for file {damaged!r}")


def is_deflated(path: Path) -> bool:
    """Return whether any entry of a zip archive is compressed, so that it cannot be mapped into memory."""
    with zipfile.ZipFile(path) as archive:
        return any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist())


def file_version(path: Path) -> tuple[int, int]:
    """Return what changes with the content of a file: its size and time; zeros if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return 0, 0
    return status.st_size, status.st_mtime_ns


def write_atomically(path: Path, text: str) -> None:
    """Replace a text file; on any failure the old one is unchanged."""
    with atomic_writer(path) as file:
        file.write(text.encode())


@contextlib.contextmanager
def atomic_writer(path: Path) -> Iterator[BinaryIO]:
    """Open a file that replaces another once it is complete and on disk.

    Not one of ``mkstemp``, which only its owner could read.
    """
    with storage_errors(path), replacing(path) as temporary, temporary.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give the path of a hidden file, which then replaces another; nothing is flushed to the disk."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}{PARTIAL}")
    try:
        yield temporary
        retry_while_in_use(lambda: temporary.replace(path))
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold a lock across threads and processes; the system frees it when its holder dies."""
    with storage_errors(path):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
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


def make_folder(path: Path) -> None:
    """Create a folder with its parents, unless it exists."""
    with storage_errors(path):
        path.mkdir(parents=True, exist_ok=True)


def make_unique_folder(path: Path) -> Path:
    """Create a new folder; append a number to its name if it exists already."""
    make_folder(path.parent)
    folder = path
    number = 2
    with storage_errors(path):
        while True:
            try:
                folder.mkdir()
            except FileExistsError:
                folder = path.with_name(f"{path.name}-{number}")
                number += 1
            else:
                return folder


def timestamp_name(seconds: float) -> str:
    """Format a time, in seconds since 1970, as a file name that sorts by time."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.localtime(seconds))}-{int(seconds % 1 * 1000):03}"


def free_space(path: Path) -> int:
    """Return the free bytes of the disk that a path is on, or will be on."""
    return shutil.disk_usage(next(each for each in (path, *path.absolute().parents) if each.exists())).free


def require_space(target: Path, needed: int) -> None:
    """Refuse to start writing what does not fit on the disk."""
    make_folder(target.parent)
    needed = math.ceil(needed * RESERVE) + JSON_RESERVE
    if (free := free_space(target.parent)) < needed:
        raise NoSpaceError(target, needed, free)


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link a file that never changes, or copy it where the system cannot link.

    Files of the program itself are always copied, so that writing to a finished model cannot change the program.
    """
    origin = source.resolve()
    if not origin.is_relative_to(TINY_MODEL):
        with contextlib.suppress(OSError):  # another disk, or a file system without hard links
            os.link(origin, target)
            return
    status = origin.stat()
    require_space(target, status.st_size)
    shutil.copyfile(origin, target)  # without its permissions: the copy of a read-only file is writable
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def link_or_copy_atomically(source: Path, target: Path) -> None:
    """The same, so that the target appears as a whole or not at all; an existing one is replaced."""
    with storage_errors(target), replacing(target) as temporary:
        link_or_copy(source, temporary)


def symlink_or_copy(source: Path, target: Path) -> None:
    """Point to a file that stays where it is, or copy it where the system has no links."""
    if target.exists() and (file_version(source) == file_version(target) or source.samefile(target)):
        return
    target.unlink(missing_ok=True)
    try:
        target.symlink_to(source.resolve())
    except OSError:
        shutil.copy2(source, target)
