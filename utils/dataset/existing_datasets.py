"""Existing datasets: lists beside audio files, and Parquet and Arrow tables.

A list never leads out of its folder. Audio that is listed but missing, or present but not listed, is reported.
"""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from utils.core.errors import AmharicTtsError, DataError
from utils.core.storage import make_folder, replacing, storage_errors
from utils.dataset.clip import Recording, ScanResult, abbreviate, said
from utils.dataset.facts import Bad
from utils.dataset.text_files import AUDIO_SUFFIXES, LISTS, AudioFinder, find_columns, json_object, read_listing

LIST_NAME = re.compile(r"(?i)metadata[^/]*\.(?:csv|tsv|txt|jsonl)|validated\.tsv|[^/]*manifest[^/]*\.json")
WHOLE_LIST = re.compile(r"(?i)metadata\.(?:csv|tsv|txt|jsonl)")  # other lists are parts or copies of it
REJECTED = re.compile(r"(?i)(?:in|un)?validated|rejected|reported|other")  # lists of Common Voice that nobody approved
TABLES = frozenset({".parquet", ".arrow"})
ROWS_PER_BATCH = 16  # rows with audio inside are large


def is_dataset(path: Path) -> bool:
    """Return whether a path is a list, a table, or a folder that holds one."""
    if path.is_dir():
        return bool(_lists(path)[0] or _tables(path))
    return path.suffix.lower() in LISTS | TABLES or bool(LIST_NAME.fullmatch(path.name))


def read_dataset(path: Path, *, speaker: str = "speaker", workspace: Path | None = None) -> ScanResult:
    """Read a list, a table, or the folder that holds them; ``speaker`` is the name where the dataset has none.

    Audio stored inside a table is unpacked into ``workspace``; without one, such tables are refused.
    """
    if not path.is_dir():
        return _without_repeats([_read_file(path, speaker, workspace)])
    lists, unused = _lists(path)
    files = lists or _tables(path) or sorted(file for folder in path.rglob("*/") for file in _tables(folder))
    if not files:
        raise DataError(
            f"{path} contains neither a list nor a table of clips.", hint="Rename the list to metadata.csv."
        )
    result = _without_repeats([_read_file(file, speaker, workspace) for file in files])
    if not lists:
        return result
    message = f"{lists[0].name} was used, not {abbreviate(file.name for file in unused)}. Enter a list to use that one."
    ignored = [Bad(path, message)] if unused else []
    return ScanResult(result.recordings, (*ignored, *result.problems, *_unlisted(path, result)))


def read_table_parts(path: Path, workspace: Path, *, speaker: str) -> Iterator[ScanResult]:
    """Read a table of a published dataset a few rows at a time, so that the caller can stop."""

    def find_file(name: str) -> Path:
        raise DataError(f"its audio is not inside the table: {name}.")

    for batch in _file_batches(path):
        yield _without_repeats([_read_table(path, [batch], workspace, find_file, speaker)])


def _lists(folder: Path) -> tuple[list[Path], list[Path]]:
    """Return the lists of a folder, and those that are not used beside metadata.csv.

    They are metadata.csv, or those with a known name, or else those with a known header.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    by_name = [path for path in files if LIST_NAME.fullmatch(path.name)]
    by_suffix = [path for path in files if path.suffix.lower() in LISTS]
    if whole := next((path for path in by_name if WHOLE_LIST.fullmatch(path.name)), None):
        return [whole], sorted({*by_name, *by_suffix} - {whole})
    return by_name or [path for path in by_suffix if not REJECTED.fullmatch(path.stem) and _has_header(path)], []


def _has_header(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            header = file.readline(16384).replace(b"\0", b"").decode("utf-8", "ignore").strip("\ufeff\r\n")
    except OSError:
        return False
    return any(find_columns(header.split(separator)) for separator in "|\t,;") or bool(
        find_columns(list(json_object(header)))
    )


def _tables(folder: Path) -> list[Path]:
    files = (path for path in folder.iterdir() if path.suffix in TABLES and not path.name.startswith("cache-"))
    return sorted(path for path in files if path.is_file())


def _read_file(path: Path, speaker: str, workspace: Path | None) -> ScanResult:
    finder = AudioFinder(path.parent)
    if path.suffix.lower() in TABLES:
        return _read_table(path, _file_batches(path), workspace, finder.find, speaker)
    listing = read_listing(path)
    result = _find_recordings(path, "line", listing.clips, finder.find, speaker)
    unusable = (Bad(path, problem) for problem in listing.problems)
    return ScanResult(result.recordings, (*unusable, *result.problems))


def _find_recordings(
    path: Path, unit: str, rows: Iterable[tuple[int, Any, str, str]], find_audio: Callable[[Any], Path], speaker: str
) -> ScanResult:
    """Make a recording of each number, audio, text and speaker; without its audio it is a problem."""
    recordings, problems = [], []
    for number, audio, text, name in rows:
        try:
            file = find_audio(audio)
        except AmharicTtsError as error:
            problems.append(Bad(path, f"{unit} {number}: {error}"))
            continue
        warnings = () if text else (said(f"{path.name}, {unit} {number}: no text is given."),)
        recordings.append(Recording(file, name or speaker, text, warnings=warnings))
    return ScanResult(tuple(recordings), tuple(problems))


def _without_repeats(parts: Iterable[ScanResult]) -> ScanResult:
    """Use a file that several lines name once, and report where they differ."""
    joined = ScanResult.joined(parts)
    first: dict[Path, Recording] = {}
    repeated: list[Path] = []
    different: list[Path] = []
    for recording in joined.recordings:
        known = first.setdefault(recording.path, recording)
        if known is not recording:
            (repeated if known.text == recording.text else different).append(recording.path)
    message = "Several lines name this file with different texts; the first one was used."
    problems = [Bad(path, message) for path in dict.fromkeys(different)]
    if repeated:
        names = abbreviate(path.name for path in repeated)
        problems.append(Bad(repeated[0].parent, f"{len(repeated)} repeated lines were skipped: {names}."))
    return ScanResult(tuple(first.values()), (*joined.problems, *problems))


def _unlisted(folder: Path, result: ScanResult) -> Iterator[Bad]:
    """Report audio in the folder that no list names."""
    listed = {recording.path for recording in result.recordings}
    below = (Path(here, name) for here, _, names in os.walk(folder.resolve()) for name in names)
    others = sorted(path for path in below if path.suffix.lower() in AUDIO_SUFFIXES and path not in listed)
    if others:
        names = abbreviate(path.name for path in others)
        yield Bad(folder, f"{len(others)} audio files are not in the list: {names}.")


def _file_batches(path: Path) -> Iterator[Any]:
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
                batches: Any = ipc.open_stream(source)
            except pa.ArrowInvalid:
                table = ipc.open_file(source)
                batches = (table.get_batch(index) for index in range(table.num_record_batches))
            yield from batches
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read as a table: {error}", hint="Download it again.") from error


def _read_table(
    source: Path, batches: Iterable[Any], workspace: Path | None, find_file: Callable[[str], Path], speaker: str
) -> ScanResult:
    def find_audio(cell: object) -> Path:
        """Return the file that a cell names, or its bytes as a file."""
        raw, name = (cell.get("bytes"), cell.get("path")) if isinstance(cell, dict) else (cell, None)
        if isinstance(raw, bytes) and raw:
            if workspace is None:
                raise DataError("its audio is inside the table, and no folder to unpack it into was given.")
            return _store(raw, Path(str(name or "")).suffix, workspace)
        written = name or raw
        if not isinstance(written, str):
            raise DataError("it has no audio.", hint="A cell must contain a path, the bytes of a file, or both.")
        return find_file(written)

    return _find_recordings(source, "row", _table_rows(source, batches), find_audio, speaker)


def _table_rows(source: Path, batches: Iterable[Any]) -> Iterator[tuple[int, object, str, str]]:
    number = 0
    for batch in batches:
        names = list(batch.schema.names)
        if (columns := find_columns(names)) is None:
            hint = "One must be named audio or audio_file, and one text, sentence or transcription."
            raise DataError(f"{source} has the columns {', '.join(names)}.", hint=hint)
        for index in range(batch.num_rows):
            number += 1
            audio, text, other, speaker = (
                None if at is None else batch.column(at)[index].as_py()
                for at in (columns.audio, columns.text, columns.other_text, columns.speaker)
            )
            yield number, audio, _plain(text) or _plain(other), _plain(speaker)


def _plain(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())


def _store(raw: bytes, suffix: str, workspace: Path) -> Path:
    """Write audio to a file named by its hash, unless it is there."""
    suffix = suffix.lower() if re.fullmatch(r"\.\w{1,5}", suffix) else ".audio"
    path = workspace / f"{hashlib.sha256(raw).hexdigest()[:24]}{suffix}"
    if not path.is_file() or path.stat().st_size != len(raw):
        make_folder(workspace)
        with storage_errors(path), replacing(path) as temporary:
            temporary.write_bytes(raw)
    return path.resolve()
