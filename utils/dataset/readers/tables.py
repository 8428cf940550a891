"""Lists in rows, with any separator or as JSON: LJSpeech, Common Voice, OpenSLR, GPT-SoVITS, NeMo, IndexTTS."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from utils.core.errors import AmharicTtsError
from utils.dataset.facts import Bad
from utils.dataset.readers.columns import choose_columns, describe_columns, without_header
from utils.dataset.readers.facts import ColumnsGuessed, LineFault, LineUnreadable, TextNotUsed, Unused
from utils.dataset.readers.folder import Folder
from utils.dataset.readers.protocol import Item, Match, Note, Row
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
    """Return the files with a column of recordings and one of text."""
    files = [path for path in folder.texts_with(*SUFFIXES) if _columns(folder, path)[1] is not None]
    names = ", ".join(path.name for path in files[:3])
    return (
        Match(0.7 if any(LIST_NAME.fullmatch(path.name) for path in files) else 0.6, names, tuple(files))
        if files
        else None
    )


def read(folder: Folder, files: Sequence[Path]) -> Iterator[Item]:
    """Read the lists that count: metadata.csv rather than parts and copies of it, none of rejected clips."""
    for path in files:
        siblings = [other for other in files if other.parent == path.parent]
        whole = next((other for other in siblings if WHOLE_LIST.fullmatch(other.name)), path)
        validated = next((other for other in siblings if other.name == "validated.tsv"), None)
        if whole is not path:
            yield Bad(path, TextNotUsed(Unused.OTHER_LIST, whole.name))
        elif validated not in {None, path}:
            yield Bad(path, TextNotUsed(Unused.OTHER_LIST, "validated.tsv"))
        elif REJECTED.fullmatch(path.name) and path != validated and len(folder.texts) > 1:
            yield Bad(
                path, TextNotUsed(Unused.OTHER_LIST, ", ".join(other.name for other in siblings if other != path))
            )
        else:
            yield from _read(folder, path)


def _columns(folder: Folder, path: Path) -> tuple[Table | None, Columns | None, bool]:
    try:
        table = parse_table(folder.text(path), path)
        return table, *choose_columns(table, folder, path)
    except AmharicTtsError:
        return None, None, False


def _read(folder: Folder, path: Path) -> Iterator[Item]:
    table, columns, is_guessed = _columns(folder, path)
    if table is None or columns is None:
        return
    lines = without_header(table, columns, folder, path)
    has_header = table.is_named or len(lines) < len(table.lines)
    if is_guessed:
        written = describe_columns(columns, table.names if has_header else [])
        yield Note(path, ColumnsGuessed(path.name, written))
    for problem in table.problems:
        yield Bad(path, problem)
    audio = folder.partners([path]).get(path, ([], ""))[0] if columns.audio is None else []
    for number, cells in lines:
        try:
            span = _span(cells, columns)
        except ValueError:
            yield Bad(path, LineUnreadable(number, LineFault.TIMES, " ".join(cells)[:60]))
            continue
        named = audio[0] if audio else cells[columns.audio].strip() if columns.audio is not None else ""
        yield Row(path, named, text_of(cells, columns), cell_of(cells, columns.speaker), span, number)


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
