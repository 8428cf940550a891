"""Unpack archives of strangers: within limits of members, bytes and ratio, and every failure is one typed error."""

import contextlib
import hashlib
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from utils.core.errors import StorageError, first_line
from utils.core.storage import file_version, make_folder, require_space, storage_errors
from utils.dataset.readers.facts import ForeignFileError

MAX_MEMBERS = 1_000_000
MAX_BYTES = 1 << 40  # of all members; what fits on the disk is checked as well
MAX_RATIO = 200  # of bytes to packed bytes, above the first megabytes: text shrinks to a tenth, a bomb to a thousandth
FREE_BYTES = 64 << 20  # a small archive may shrink as much as it likes
BLOCK = 1 << 20
DAMAGE = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    KeyError,
    ValueError,
    RuntimeError,
    AssertionError,
    OSError,
    SyntaxError,  # of XML
)


@contextlib.contextmanager
def foreign(path: Path) -> Iterator[None]:
    """Turn whatever the libraries raise about a damaged file into one typed error."""
    try:
        yield
    except (StorageError, ForeignFileError):
        raise
    except DAMAGE as error:
        protected = "password" in str(error) or "encrypted" in str(error)
        raise ForeignFileError(path, "protected" if protected else "damaged", first_line(error)) from error
    except MemoryError as error:
        raise ForeignFileError(path, "too_large") from error


def unpack(path: Path, workspace: Path) -> Path:
    """Unpack a .zip or .tar into a folder of its own in ``workspace``, unless that was done; return it."""
    version = hashlib.sha256(repr((str(path.resolve()), *file_version(path))).encode()).hexdigest()[:10]
    target = workspace / f"{path.name.partition('.')[0][:40]}-{version}"
    done = target / ".unpacked"
    if not done.is_file():
        make_folder(target)
        unpack_into(path, target)
        done.touch()
    return target


def unpack_into(path: Path, target: Path) -> None:
    """Unpack the files of an archive below a folder; members that lead out of it are left out."""
    with foreign(path):
        if path.name.lower().endswith(".zip"):
            _unpack_zip(path, target)
        else:
            _unpack_tar(path, target)


def _unpack_zip(path: Path, target: Path) -> None:
    left = _allowed(path)
    with zipfile.ZipFile(path) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]
        if len(infos) > MAX_MEMBERS:
            raise ForeignFileError(path, "many_members", f"{MAX_MEMBERS:,}")
        size = sum(info.file_size for info in infos)
        if size > left:
            raise ForeignFileError(path, "bomb")
        require_space(target, size)
        for info in infos:
            with archive.open(info) as source:
                left -= _copy(path, source, target, _name(info), left)


def _unpack_tar(path: Path, target: Path) -> None:
    left = _allowed(path)
    with tarfile.open(path) as tar:
        for number, member in enumerate(tar):
            if number >= MAX_MEMBERS:
                raise ForeignFileError(path, "many_members", f"{MAX_MEMBERS:,}")
            content = tar.extractfile(member) if member.isfile() or member.islnk() else None
            if content is not None:
                left -= _copy(path, content, target, member.name, left)
        if tar.fileobj and tar.fileobj.read(BLOCK).strip(b"\0"):  # tarfile stops silently at a damaged header
            raise ForeignFileError(path, "damaged", "header")


def _allowed(path: Path) -> int:
    """Return the bytes that an archive may unpack to."""
    return min(MAX_BYTES, FREE_BYTES + path.stat().st_size * MAX_RATIO)


def _copy(path: Path, source: IO[bytes], target: Path, name: str, limit: int) -> int:
    """Copy a member to its place below a folder; return its bytes. The sizes in an archive may lie."""
    parts = [part for part in PurePosixPath(name.replace("\\", "/")).parts if part not in {"/", "."}]
    if not parts or ".." in parts or "\0" in name:
        raise ForeignFileError(path, "damaged", name)
    place = target.joinpath(*parts)
    with storage_errors(place):
        make_folder(place.parent)
        file = place.open("wb")
    count = 0
    with file:
        while block := source.read(BLOCK):
            count += len(block)
            if count > limit:
                raise ForeignFileError(path, "bomb")
            with storage_errors(place):
                file.write(block)
    return count


def _name(info: zipfile.ZipInfo) -> str:
    """Return the name of a member; many programs write UTF-8 without saying so."""
    if info.flag_bits & 0x800:
        return info.filename
    try:
        return info.filename.encode("cp437").decode("utf-8")
    except UnicodeError:
        return info.filename
