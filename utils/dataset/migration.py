"""Reading a dataset of version 1.0: two CSV files that only grew.

``manifest.csv`` had a row for each change of a clip; the last one counts. ``recordings.csv`` had a row for each
finished recording; clips of other recordings do not count. Both files stay where they are.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from utils.core.errors import DataError

MANIFEST, RECORDINGS = "manifest.csv", "recordings.csv"
CLIP_COLUMNS = (
    *("id", "recording", "source", "start", "end", "speaker", "text"),
    *("speech_ratio", "snr_db", "clipping", "loudness_lufs", "chars_per_second", "confidence", "second_cer"),
    *("status", "reason", "content", "split", "audio"),
)
SOURCE_COLUMNS = ("recording", "path", "size", "changed", "seconds", "reason", "warnings")
NUMBERS = range(3, 5), range(7, 14)  # span and scores
STATUS = 14
ESCAPES = {"\\\\": "\\", "\\n": "\n", "\\r": "\r"}


class OldDataset(NamedTuple):
    """The rows of a dataset of version 1.0, in the order of the columns of today's store."""

    sources: list[tuple[Any, ...]]
    clips: list[list[Any]]


def is_needed(folder: Path) -> bool:
    """Tell whether a folder holds a dataset of version 1.0."""
    return (folder / MANIFEST).is_file()


def read(folder: Path) -> OldDataset:
    """Read the latest row of each clip whose recording is finished."""
    sources = [_source(folder, cells) for cells in _rows(folder / RECORDINGS, SOURCE_COLUMNS)]
    finished = {source[0] for source in sources if source[0] and not source[5]}
    latest = {cells[0]: cells for cells in _rows(folder / MANIFEST, CLIP_COLUMNS) if cells[1] in finished}
    return OldDataset(sources, [_clip(folder, cells) for cells in latest.values()])


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[list[str]]:
    """Yield the cells of every complete line; what a crash cut off at the end does not count."""
    try:
        content = path.read_bytes() if path.is_file() else b""
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        try:
            (cells,) = csv.reader([line.decode("utf-8-sig").rstrip("\r")], strict=True)
        except (ValueError, csv.Error) as error:
            raise DataError(f"{path}:{number}: this row is damaged: {error}.", hint="Remove the line.") from error
        if len(cells) != len(columns) or (number == 1 and tuple(cells) != columns):
            raise DataError(
                f"{path}:{number}: expected the columns {','.join(columns)}.",
                hint="Remove the line; if it is the first, the file is from another program.",
            )
        if number > 1:
            yield [_unescape(cell) for cell in cells]


def _clip(folder: Path, cells: list[str]) -> list[Any]:
    row: list[Any] = list(cells)
    try:
        for number in (number for numbers in NUMBERS for number in numbers):
            row[number] = float(cells[number]) if cells[number] else None
    except ValueError as error:
        raise DataError(
            f"{folder / MANIFEST}: clip {cells[0]} is damaged: {error}.", hint="Remove its line."
        ) from error
    row[STATUS] = "excluded" if cells[STATUS] == "aside" else cells[STATUS]
    return row


def _source(folder: Path, cells: list[str]) -> tuple[Any, ...]:
    recording, path, size, changed, seconds, reason, warnings = cells
    try:
        return recording, path, int(size), int(changed), float(seconds), reason, tuple(warnings.splitlines())
    except ValueError as error:
        raise DataError(f"{folder / RECORDINGS}: the row of {path} is damaged: {error}.", hint="Remove it.") from error


def _unescape(cell: str) -> str:
    if "\\" not in cell:
        return cell
    signs = iter(cell)
    return "".join(ESCAPES.get(pair := sign + next(signs, ""), pair) if sign == "\\" else sign for sign in signs)
