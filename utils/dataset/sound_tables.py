"""Tables with the sound inside, or beside: Parquet and Arrow files, and the datasets of the Hugging Face hub."""

import hashlib
import importlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from utils.core.errors import AmharicTtsError, DataError
from utils.core.storage import retry_while_in_use, storage_error
from utils.dataset.clip import Problem, Recording, ScanResult
from utils.dataset.list_files import named
from utils.dataset.list_paths import FilesNearby, each_once

TABLES = frozenset({".parquet", ".arrow"})
ROWS_AT_ONCE = 16  # with sound inside, a row is large


def read_table(path: Path, workspace: Path | None, speaker: str) -> ScanResult:
    """Read a Parquet or Arrow file with a column of sound and one of text."""
    return _from_batches(_batches(path), _Sounds(path, workspace, FilesNearby(path.parent).find), speaker)


def read_hub(name: str, workspace: Path, *, speaker: str = "speaker") -> ScanResult:
    """Read a dataset of the Hugging Face hub; needs the package ``datasets``.

    Args:
        name: ``owner/name`` or ``owner/name:part``, or a local folder in any layout that the package reads.
        workspace: Folder for the sound.
        speaker: Who speaks where the dataset does not tell.
    """
    try:
        datasets = importlib.import_module("datasets")
    except ModuleNotFoundError as error:
        hint = "Install it with: pip install datasets. Or download the dataset and give its folder."
        raise DataError(f"hf:{name} needs the package datasets, which is not installed.", hint=hint) from error
    path, _, part = name.partition(":")
    try:
        # before its version 4 the package ran the programs that some datasets bring
        splits: Mapping[str, Any] = datasets.load_dataset(path, part or None, trust_remote_code=False)
    except (OSError, ValueError, RuntimeError) as error:  # all that the package raises, its own errors included
        hint = "Check the name and the connection; name a part of it after a colon."
        raise DataError(f"hf:{name} cannot be loaded: {error}", hint=hint) from error
    sounds = _Sounds(Path(f"hf:{name}"), workspace, _fetched)
    return each_once([_from_batches(_raw_batches(split), sounds, speaker) for split in splits.values()])


def _batches(path: Path) -> Iterator[Any]:
    """Yield the rows of a Parquet or Arrow file, a few at a time."""
    import pyarrow as pa
    from pyarrow import ipc, parquet

    try:
        if path.suffix.lower() == ".parquet":
            with parquet.ParquetFile(path) as table:
                yield from table.iter_batches(batch_size=ROWS_AT_ONCE)
            return
        with pa.memory_map(str(path)) as source:
            try:
                batches: Any = ipc.open_stream(source)
            except pa.ArrowInvalid:
                table = ipc.open_file(source)
                batches = (table.get_batch(index) for index in range(table.num_record_batches))
            yield from batches
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as a table: {error}", hint="Download it again.") from error


def _from_batches(batches: Iterable[Any], sounds: "_Sounds", speaker: str) -> ScanResult:
    recordings: list[Recording] = []
    problems: list[Problem] = []
    number = 0
    for batch in batches:
        names = list(batch.schema.names)
        if (columns := named(names)) is None:
            hint = "One has to be called audio or audio_file, one text, sentence or transcription."
            raise DataError(f"{sounds.place} has the columns {', '.join(names)}.", hint=hint)
        texts = (columns.text, columns.plain_text, columns.speaker)
        for index in range(batch.num_rows):
            number += 1
            text, plain, name = ("" if at is None else _words(batch.column(at)[index].as_py()) for at in texts)
            try:
                path = sounds.take(batch.column(columns.audio)[index].as_py())
            except AmharicTtsError as error:
                problems.append(Problem(sounds.place, f"row {number}: {error}"))
                continue
            warnings = () if text or plain else (f"{sounds.place.name}, row {number}: no text is given.",)
            recordings.append(Recording(path, name or speaker, text or plain, warnings=warnings))
    return ScanResult(tuple(recordings), tuple(problems))


def _words(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())


@dataclass(frozen=True)
class _Sounds:
    """Where the sound of a table goes, and where it is looked for when it lies outside."""

    place: Path
    workspace: Path | None
    find: Callable[[str], Path]

    def take(self, cell: object) -> Path:
        """Return the file of a cell: one that it names, or its bytes, stored in the workspace."""
        raw, name = (cell.get("bytes"), cell.get("path")) if isinstance(cell, dict) else (cell, None)
        if isinstance(raw, bytes) and raw:
            if self.workspace is None:
                raise DataError("its sound lies inside the table, and no folder to unpack it into was given.")
            return _stored(raw, Path(str(name or "")).suffix, self.workspace)
        written = name or raw
        if not isinstance(written, str):
            raise DataError("it holds no sound.", hint="A cell holds a path, the bytes of a file, or both.")
        return self.find(written)


def _fetched(written: str) -> Path:
    """Return a file that the hub's package has put on this machine."""
    path = Path(written)
    if not path.is_file():
        raise DataError(f"no such sound file: {written}.")
    return path.resolve()


def _raw_batches(split: Any) -> Iterator[Any]:  # noqa: ANN401 - the package is not there to be named
    """Yield the rows of a split with the sound as it was stored, undecoded."""
    for table in split.with_format("arrow").iter(ROWS_AT_ONCE):
        yield from table.to_batches()


def _stored(raw: bytes, suffix: str, workspace: Path) -> Path:
    """Write sound under the name of its content; what is there already is left."""
    ending = suffix.lower() if re.fullmatch(r"\.\w{1,5}", suffix) else ".audio"
    path = workspace / f"{hashlib.sha256(raw).hexdigest()[:24]}{ending}"
    if path.is_file() and path.stat().st_size == len(raw):
        return path.resolve()
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        workspace.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(raw)
        retry_while_in_use(lambda: temporary.replace(path))
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise storage_error(path, error) from error
    return path.resolve()
