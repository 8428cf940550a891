"""Reads the tables of the language, `data/*.tsv`: tab-separated, with `#` comments. Word lists: see `lexicon`."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

DATA = Path(__file__).parent / "data"


class TableError(ValueError):
    """A data file holds a line that cannot be read; the message names the file and the line."""


@cache
def rows(name: str, *, columns: int) -> tuple[tuple[str, ...], ...]:
    """Return every row of `data/<name>`, read once; each must have exactly `columns` non-empty cells."""
    return tuple(cells for _, cells in numbered_rows(DATA / name, columns))


@cache
def mapping(name: str) -> dict[str, str]:
    """Return a two-column table as a dictionary; a key written twice is an error."""
    path, values = DATA / name, dict[str, str]()
    for number, (key, value) in numbered_rows(path, 2):
        if key in values:
            raise TableError(f"{path}:{number}: {key!r} appears twice; remove one of the two lines")
        values[key] = value
    return values


@cache
def words(name: str) -> frozenset[str]:
    """Return every word of a table of words."""
    return frozenset(word for cells in rows(name, columns=1) for word in cells[0].split())


def numbered_rows(path: Path, columns: int) -> list[tuple[int, tuple[str, ...]]]:
    """Read the rows of one file with their line numbers, for callers that report errors in single rows."""
    numbered = list(numbered_cells(path))
    for number, cells in numbered:
        if len(cells) != columns or not all(cells):
            raise TableError(f"{path}:{number}: expected {columns} tab-separated cells, found {cells!r}")
    return numbered


def numbered_cells(path: Path) -> Iterator[tuple[int, tuple[str, ...]]]:
    """Read the cells of each line that is neither empty nor a comment, with its number."""
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").split("\n"), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, tuple(cell.strip() for cell in line.split("\t"))
