"""Parquet and Arrow tables, as Hugging Face publishes datasets and ``save_to_disk`` writes them."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from utils.core.errors import first_line
from utils.core.storage import make_folder, replacing, storage_errors
from utils.dataset.facts import Bad
from utils.dataset.readers.columns import columns_by_content, describe_columns, given_columns
from utils.dataset.readers.facts import ColumnsGuessed, ForeignFileError, NotOnDisk
from utils.dataset.readers.folder import TABLES, Folder
from utils.dataset.readers.protocol import Item, Match, matched
from utils.dataset.readers.tables import row_of
from utils.dataset.text_files import Columns, Table, find_columns, plain_cell

NAME = "table"
IS_LIST = True
ROWS_PER_BATCH = 16  # rows with audio inside are large
ABOUT = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json"}


def recognise(folder: Folder) -> Match | None:
    return matched(0.9, folder.texts_with(*TABLES), [path for path in folder.texts if path.name in ABOUT])


def read(folder: Folder, path: Path) -> Iterator[Item]:
    yield from read_batches(folder, path, batches(folder.files[path]))


def batches(path: Path) -> Iterator[Any]:
    """Yield the rows of a Parquet or Arrow file, a few at a time."""
    import pyarrow as pa
    from pyarrow import ipc, parquet

    try:
        if path.suffix.lower() == ".parquet":
            with parquet.ParquetFile(path) as table:
                yield from table.iter_batches(batch_size=ROWS_PER_BATCH)
            return
        with pa.memory_map(str(path)) as source:
            try:
                found: Any = ipc.open_stream(source)
            except pa.ArrowInvalid:
                table = ipc.open_file(source)
                found = (table.get_batch(index) for index in range(table.num_record_batches))
            yield from found
    except (pa.ArrowException, OSError) as error:
        raise ForeignFileError(path, "no_table", first_line(error)) from error


def read_batches(folder: Folder, path: Path, parts: Iterable[Any]) -> Iterator[Item]:
    """Yield the rows of some batches; audio inside the table is written to the workspace."""
    number = 0
    columns = None
    for batch in parts:
        if columns is None:
            columns, is_guessed = _columns(folder, path, batch)
            if is_guessed:
                yield ColumnsGuessed(path.name, describe_columns(columns, list(batch.schema.names)))
        for index in range(batch.num_rows):
            number += 1
            values = [column[index].as_py() for column in batch.columns]
            raw, name = _audio(None if columns.audio is None else values[columns.audio])
            if raw and folder.workspace is None:
                yield Bad(path, NotOnDisk())
                return
            cells = list(map(plain_cell, values))
            inside = columns._replace(start=None)  # the audio is a whole file, not a part of one
            if raw and folder.workspace:
                yield row_of(path, number, store(raw, Path(name).suffix, folder.workspace), cells, inside)
            else:
                yield row_of(path, number, name, cells, columns)


def _columns(folder: Folder, path: Path, batch: Any) -> tuple[Columns, bool]:  # noqa: ANN401  # of pyarrow
    names = list(batch.schema.names)
    if known := given_columns(Table(names, [], [], is_named=True), folder.columns) or find_columns(names):
        return known, False
    sample = [[plain_cell(batch.column(at)[row].as_py()) for at in range(len(names))] for row in range(batch.num_rows)]
    sounds = [at for at in range(len(names)) if _audio(batch.column(at)[0].as_py())[0]] if sample else []
    if not sounds or not (guessed := columns_by_content(sample, names, sounds[0], folder)):
        raise ForeignFileError(path, "no_columns", ", ".join(names))
    return guessed, True


def _audio(cell: object) -> tuple[bytes, str]:
    """Return the bytes in a cell, and the name of their file."""
    raw, name = (cell.get("bytes"), cell.get("path")) if isinstance(cell, dict) else (cell, None)
    if isinstance(raw, bytes):
        return raw, str(name or "")
    return b"", str(name or raw or "")


def store(raw: bytes, suffix: str, workspace: Path) -> Path:
    """Write audio to a file named by its hash, unless it is there."""
    suffix = suffix.lower() if re.fullmatch(r"\.\w{1,5}", suffix) else ".audio"
    path = workspace / f"{hashlib.sha256(raw).hexdigest()[:24]}{suffix}"
    if not path.is_file() or path.stat().st_size != len(raw):
        make_folder(workspace)
        with storage_errors(path), replacing(path) as temporary:
            temporary.write_bytes(raw)
    return path.resolve()
