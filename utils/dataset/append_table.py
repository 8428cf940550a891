"""A CSV that only grows: one physical line a row, and a line that was cut off by a crash counts for nothing."""

import contextlib
import csv
import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from utils.core.errors import DataError
from utils.core.events import read_block
from utils.core.storage import storage_error

ESCAPES = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"))
NO_SPACE = OSError(28, "No space left on device")


class Line(NamedTuple):
    """One row, and the byte at which it begins."""

    offset: int
    cells: list[str]


class Table:
    """Rows of named columns in a file.

    Args:
        path: The file; it need not be there yet.
        columns: The names in its first line.
    """

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self.path = path
        self.columns = list(columns)

    def read(self) -> Iterator[Line]:
        """Yield every whole row, oldest first."""
        offset = 0
        for number, line in enumerate(self._whole().splitlines(keepends=True), 1):
            if number > 1:
                yield Line(offset, self._cells(line, number))
            elif self._cells(line, number) != self.columns:
                raise DataError(
                    f"{self.path}:1: its columns are not {','.join(self.columns)}.",
                    hint="It was made by another program or version; give this project a new folder.",
                )
            offset += len(line)

    def append(self, rows: Iterable[Sequence[str]]) -> None:
        """Add rows at the end, all of them or none, and see them on disk."""
        content = b"".join(map(encode, rows))
        if not content:
            return
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        except OSError as error:
            raise storage_error(self.path, error) from error
        try:
            self._write(descriptor, content)
        except OSError as error:
            raise storage_error(self.path, error) from error
        finally:
            os.close(descriptor)

    def cut(self, offset: int) -> None:
        """Drop what lies behind a byte."""
        try:
            os.truncate(self.path, offset)
        except OSError as error:
            raise storage_error(self.path, error) from error

    def _write(self, descriptor: int, content: bytes) -> None:
        whole = os.fstat(descriptor).st_size
        if whole and read_block(self.path, whole - 1, 1) != b"\n":
            whole = len(self._whole())
        header = b"" if whole else encode(self.columns)
        os.ftruncate(descriptor, whole)
        os.lseek(descriptor, 0, os.SEEK_END)
        try:
            if os.write(descriptor, header + content) < len(header) + len(content):
                raise NO_SPACE
            os.fsync(descriptor)
        except OSError:
            with contextlib.suppress(OSError):  # else the rest is a torn line, which readers ignore
                os.ftruncate(descriptor, whole)
            raise

    def _whole(self) -> bytes:
        """Return the file up to the end of its last whole line."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror}.") from error
        return content[: content.rfind(b"\n") + 1]

    def _cells(self, line: bytes, number: int) -> list[str]:
        try:
            text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            cells = _parted(text)
        except (ValueError, csv.Error) as error:
            raise DataError(f"{self.path}:{number}: this row is damaged: {error}.", hint="Remove the line.") from error
        if len(cells) != len(self.columns):
            raise DataError(
                f"{self.path}:{number}: {len(cells)} cells instead of {len(self.columns)}.", hint="Remove the line."
            )
        return [unescape(cell) for cell in cells] if b"\\" in line else cells


def _parted(text: str) -> list[str]:
    """Take a row apart; most have no quotes, and a table of 50 000 clips is read for each change of one."""
    if text and '"' not in text:
        return text.split(",")
    (cells,) = csv.reader([text], strict=True)
    return cells


def encode(cells: Sequence[str]) -> bytes:
    """Write one row as one physical line."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerow([escape(cell) for cell in cells])
    return buffer.getvalue().encode("utf-8", "replace")


def escape(cell: str) -> str:
    """Write line breaks as two letters."""
    for letter, written in ESCAPES:
        cell = cell.replace(letter, written)
    return cell


def unescape(cell: str) -> str:
    """Undo ``escape``."""
    letters = {written: letter for letter, written in ESCAPES}
    parts = iter(cell)
    return "".join(letters.get(pair := part + next(parts, ""), pair) if part == "\\" else part for part in parts)
