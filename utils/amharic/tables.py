"""The one reader of the language's data files: `data/*.tsv`, tab-separated, with `#` comments."""

from functools import cache
from pathlib import Path

DATA = Path(__file__).parent / "data"


class TableError(ValueError):
    """A data file holds a line that cannot be read; the message names the file and the line."""


@cache
def rows(name: str, *, columns: int) -> tuple[tuple[str, ...], ...]:
    """Return every row of `data/<name>`, read once; each must have exactly `columns` non-empty cells."""
    return read_rows(DATA / name, columns=columns)


@cache
def mapping(name: str) -> dict[str, str]:
    """Return a two-column table as a dictionary; a key written twice is an error."""
    return read_mapping(DATA / name)


def read_rows(path: Path, *, columns: int) -> tuple[tuple[str, ...], ...]:
    """Read the rows of one file anywhere on disk, for tables that belong to a user's project."""
    return tuple(cells for _, cells in numbered_rows(path, columns))


def read_mapping(path: Path) -> dict[str, str]:
    """Read a two-column file anywhere on disk as a dictionary; a key written twice is an error."""
    found: dict[str, str] = {}
    for number, (key, value) in numbered_rows(path, 2):
        if key in found:
            raise TableError(f"{path}:{number}: {key!r} appears twice; remove one of the two lines")
        found[key] = value
    return found


def numbered_rows(path: Path, columns: int) -> list[tuple[int, tuple[str, ...]]]:
    """Read the rows of one file with their line numbers, for callers that report errors in single rows."""
    numbered = []
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        cells = tuple(cell.strip() for cell in line.split("\t"))
        if len(cells) != columns or not all(cells):
            raise TableError(f"{path}:{number}: expected {columns} tab-separated cells, found {cells!r}")
        numbered.append((number, cells))
    return numbered


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise TableError(f"{path}: no such table") from error
    except UnicodeDecodeError as error:
        raise TableError(f"{path}: not UTF-8 text ({error}); save it as UTF-8") from error
