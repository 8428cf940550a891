"""Tables of arrays that only grow: Arrow files that are mapped into memory, each written whole or not at all.

A row has a key and some columns: numbers, or lists of numbers. Rows are read as NumPy views of the mapped file, so a
table may be far larger than memory, and what is not asked for is not read.
"""

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from utils.core.errors import DataError
from utils.core.storage import PARTIAL, atomic_writer, make_folder

KEY = "key"
ENDING = ".arrow"
HINT = "Run python -m utils features again to recompute missing or damaged features."

Array = npt.NDArray[Any]


class Damaged(DataError):  # noqa: N818  # reads as what the file is
    """A shard does not hold what was written."""


class Column(NamedTuple):
    """The numbers of one column of one shard; a row of a list lies between two offsets."""

    values: Array
    offsets: Array | None

    def row(self, number: int) -> Array:
        """Return a view of one row: an array of one number where the column holds no lists."""
        if self.offsets is None:
            return self.values[number : number + 1]
        return self.values[self.offsets[number] : self.offsets[number + 1]]

    def length(self, number: int) -> int:
        """Return how many numbers a row has, without reading them."""
        return 1 if self.offsets is None else int(self.offsets[number + 1] - self.offsets[number])

    def digest(self) -> str:
        """Hash the numbers and where the rows lie."""
        digest = hashlib.blake2b(np.ascontiguousarray(self.values).data, digest_size=16)
        if self.offsets is not None:
            digest.update(np.ascontiguousarray(self.offsets).data)
        return digest.hexdigest()


class Place(NamedTuple):
    """Where a row lies."""

    columns: Mapping[str, Column]
    number: int


class Shards:
    """All shards of one folder.

    Args:
        folder: Where they lie; it need not be there yet.
        columns: The type of each column besides the key.
        bulky: Columns too large to be hashed at every opening; ``mend(thorough=True)`` hashes them too.
    """

    def __init__(self, folder: Path, columns: Mapping[str, pa.DataType], bulky: Collection[str] = ()) -> None:
        self.folder = folder
        self.schema = pa.schema([(KEY, pa.string()), *columns.items()])
        self.bulky = frozenset(bulky)
        self._shards: list[Mapping[str, Column]] = []
        self._places: dict[str, int] = {}  # shard and row in one number: a tuple takes three times the memory

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to another process as a folder to map there, never as the data."""
        columns = {field.name: field.type for field in self.schema if field.name != KEY}
        return opened, (self.folder, columns, self.bulky)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def keys(self) -> Collection[str]:
        """Return the keys, oldest first."""
        return self._places.keys()

    def find(self, key: str) -> Place:
        """Return where the row of a key lies."""
        if (place := self._places.get(key)) is None:
            raise DataError(f"{self.folder} has no features for {key}.", hint=HINT)
        shard, number = divmod(place, 1 << 32)
        return Place(self._shards[shard], number)

    def paths(self) -> list[Path]:
        """List the files, oldest first."""
        return sorted(self.folder.glob(f"[0-9]*{ENDING}"))

    def open(self) -> None:
        """Map every shard; one that is damaged is an error."""
        for path in self.paths():
            self._take(self._checked(path, thorough=False))

    def mend(self, *, thorough: bool = False) -> list[str]:
        """Map every shard that is whole and remove the others, and what a killed writer left; say what was removed."""
        removed = []
        for path in self.paths():
            try:
                self._take(self._checked(path, thorough=thorough))
            except Damaged as error:
                removed.append(str(error))
                path.unlink()
        for path in self.folder.glob(f".*{PARTIAL}"):
            path.unlink()
        return removed

    def append(self, keys: Sequence[str], columns: Mapping[str, Sequence[Array] | Array]) -> None:
        """Write rows as one new shard, all or none, and map it."""
        arrays = [pa.array(keys, pa.string())]
        arrays += [_arrow(columns[field.name], field.type) for field in self.schema if field.name != KEY]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        digests = {name: column.digest() for name, column in _columns(batch)}
        marked = batch.replace_schema_metadata(digests | {"rows": str(len(keys)), KEY: _key_digest(keys)})
        last = self.paths()[-1:]
        path = self.folder / f"{1 + (int(last[0].stem) if last else -1):06d}{ENDING}"
        _write(path, marked)
        self._take(self._checked(path, thorough=False))

    def _take(self, batch: pa.RecordBatch) -> None:
        first = len(self._shards) << 32
        self._shards.append(dict(_columns(batch)))
        self._places.update((key, first + row) for row, key in enumerate(batch.column(KEY).to_pylist()))

    def _checked(self, path: Path, *, thorough: bool) -> pa.RecordBatch:
        """Map a shard and compare its rows and hashes with what its writer noted."""
        try:
            with pa.memory_map(str(path)) as source:  # the map outlives the open file
                reader = pa.ipc.open_file(source)
                batch = reader.get_batch(0)
            batch.validate()
            noted = {name.decode(): value.decode() for name, value in (reader.schema.metadata or {}).items()}
            fits = batch.schema.equals(self.schema) and noted.get("rows") == str(batch.num_rows)
            fits = fits and noted.get(KEY) == _key_digest(batch.column(KEY).to_pylist())
        except (pa.ArrowException, OSError, ValueError, IndexError) as error:
            raise Damaged(f"{path} is damaged: {error}.", hint=HINT) from error
        checked = ((name, column) for name, column in _columns(batch) if thorough or name not in self.bulky)
        if not fits or any(noted.get(name) != column.digest() for name, column in checked):
            raise Damaged(f"{path} is damaged: its content has changed.", hint=HINT)
        return batch


def opened(folder: Path, columns: Mapping[str, pa.DataType], bulky: Collection[str] = ()) -> Shards:
    """Open the shards of a folder."""
    shards = Shards(folder, columns, bulky)
    shards.open()
    return shards


def _columns(batch: pa.RecordBatch) -> Iterator[tuple[str, Column]]:
    """Name the columns as views of the batch's memory."""
    for field, array in zip(batch.schema, batch.columns, strict=True):
        if pa.types.is_list(field.type):
            yield field.name, Column(array.values.to_numpy(), array.offsets.to_numpy())
        elif field.name != KEY:
            yield field.name, Column(array.to_numpy(), None)


def _arrow(rows: Sequence[Array] | Array, kind: pa.DataType) -> pa.Array:
    """Put the rows of one column behind one another."""
    if not pa.types.is_list(kind):
        return pa.array(np.asarray(rows), kind)
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.concatenate(rows), kind.value_type), type=kind)


def _key_digest(keys: Sequence[str]) -> str:
    return hashlib.blake2b("\n".join(keys).encode(), digest_size=16).hexdigest()


def _write(path: Path, batch: pa.RecordBatch) -> None:
    """Write a file that appears under its name only when it is complete and on disk."""
    make_folder(path.parent)
    with atomic_writer(path) as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)
