"""Lists in rows, with any separator or as JSON: LJSpeech, Common Voice, OpenSLR, GPT-SoVITS, NeMo, IndexTTS."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from utils.core.errors import AmharicTtsError
from utils.dataset.facts import Bad
from utils.dataset.readers.columns import choose_columns, describe_columns, without_header
from utils.dataset.readers.facts import ColumnsGuessed, TextNotUsed
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Row, matched, unreadable
from utils.dataset.text_files import LISTS, Columns, Table, cell_of, parse_table, text_of
from utils.recognition.spans import Span

NAME = "list"
IS_LIST = True
SUFFIXES = LISTS | {".txt", ".list", ".lst", ".json", ".dat", ".filelist", ".psv"}
LIST_NAME = re.compile(r"(?i)metadata[^/]*\.(?:csv|tsv|txt|jsonl)|validated\.tsv|[^/]*manifest[^/]*\.json")
WHOLE_LIST = re.compile(r"(?i)metadata\.(?:csv|tsv|txt|jsonl)")  # other lists are parts or copies of it
REJECTED = re.compile(  # lists of Common Voice that nobody approved
    r"(?i)(?:(?:in|un)?validated|rejected|reported|other|(?:un)?validated_sentences|clip_durations)\.tsv"
)
MILLISECONDS = 1000.0  # whole numbers in the lists of Whisper


def recognise(folder: Folder) -> Match | None:
    """Return the lists that count: metadata.csv rather than parts and copies of it, none of rejected clips."""
    files = [path for path in folder.texts_with(*SUFFIXES) if _columns(folder, path)[1] is not None]
    better = {path: names for path in files if (names := _better(folder, path, files))}
    confidence = 0.7 if any(LIST_NAME.fullmatch(path.name) for path in files) else 0.6
    unused = [Bad(path, TextNotUsed("other_list", names)) for path, names in better.items()]
    return matched(confidence, [path for path in files if path not in better], unused=unused)


def _better(folder: Folder, path: Path, files: Sequence[Path]) -> str:
    """Return the lists in the same folder that are used instead of this one."""
    names = [other.name for other in files if other.parent == path.parent]
    whole = next((name for name in names if WHOLE_LIST.fullmatch(name)), "")
    if not whole and "validated.tsv" in names:
        whole = "validated.tsv"
    if whole:
        return whole if whole != path.name else ""
    return ", ".join({*names} - {path.name}) if REJECTED.fullmatch(path.name) and len(folder.texts) > 1 else ""


def _columns(folder: Folder, path: Path) -> tuple[Table | None, Columns | None, bool]:
    try:
        table = parse_table(folder.text(path), path)
        return table, *choose_columns(table, folder, path)
    except AmharicTtsError:
        return None, None, False


def read(folder: Folder, path: Path) -> Iterator[Item]:
    table, columns, is_guessed = _columns(folder, path)
    if table is None or columns is None:
        return
    lines = without_header(table, columns, folder, path)
    has_header = table.is_named or len(lines) < len(table.lines)
    if is_guessed:
        yield ColumnsGuessed(path.name, describe_columns(columns, table.names if has_header else []))
    for problem in table.problems:
        yield Bad(path, problem)
    for number, cells in lines:
        audio = folder.partner(path) if columns.audio is None else cells[columns.audio].strip()
        yield row_of(path, number, audio, cells, columns)


def row_of(path: Path, number: int, audio: Path | str, cells: Sequence[str], columns: Columns) -> Item:
    """Return the row of a line, or why its times cannot be read."""
    try:
        span = _span(cells, columns)
    except ValueError:
        return unreadable(path, number, " ".join(cells))
    return Row(path, audio, text_of(cells, columns), number, cell_of(cells, columns.speaker), span)


def _span(cells: Sequence[str], columns: Columns) -> Span | None:
    """Return the times of a line; a duration alone is that of the file."""
    start, end, duration = (cell_of(cells, at) for at in (columns.start, columns.end, columns.duration))
    if not start:
        return None
    begin = float(start.replace(",", "."))
    stop = float(end.replace(",", ".")) if end else begin + float(duration.replace(",", ".") or "nan")
    scale = MILLISECONDS if columns.audio is None and "." not in start + end else 1.0
    if not 0 <= begin < stop:
        raise ValueError(start)
    return Span(begin / scale, stop / scale)
