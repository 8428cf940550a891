"""Which column of a list has what: as the person says, by name, or by content."""

import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from utils.core.errors import UnknownLanguageError
from utils.core.languages import canonical
from utils.dataset.readers.facts import ColumnsNotUsableError
from utils.dataset.readers.folder import Folder, is_media
from utils.dataset.text_files import MAX_NAME_WORDS, Columns, Line, Table, count_letters, find_columns, guess_columns

FIELDS = ("audio", "text", "speaker", "start", "end", "duration")
SAMPLE = 200  # lines that are looked at
SHARE = 0.3  # of the cells of an audio column that must lead to a recording
NOT_SPEAKERS = frozenset("m f male female man woman other train dev test valid validation eval true false".split())
NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


def parse_columns(written: str) -> dict[str, str]:
    """Read ``audio=Datei,text=Satz``: what a column holds, and its name or number."""
    pairs = [part.partition("=") for part in written.split(",") if part.strip()]
    named = {field.strip(): name.strip() for field, _, name in pairs}
    if not named.keys() <= set(FIELDS) or not all(named.values()):
        raise ColumnsNotUsableError(written)
    return named


def choose_columns(table: Table, folder: Folder, path: Path) -> tuple[Columns | None, bool]:
    """Return the columns of a table, and whether they were guessed by content."""
    if folder.columns and (chosen := given_columns(table, folder.columns)):
        return chosen, False
    if table.is_named and (known := find_columns(table.names)):
        return known, False
    return _columns_of_cells(table, folder, path)


def _columns_of_cells(table: Table, folder: Folder, path: Path) -> tuple[Columns | None, bool]:
    """Return the columns of a table whose header says nothing, and whether they were guessed by content."""
    rows = [cells for _, cells in table.lines[:SAMPLE]]
    if not rows or not path.suffix:
        return None, False
    shares = [_share(folder, path, column) for column in zip(*rows, strict=False)]
    audio = shares.index(max(shares))
    if shares[audio] < SHARE or _is_text(folder, path, (cells[audio] for cells in rows)):
        return _without_audio(table, rows, folder, path), True
    is_headed = _has_header(table, audio, folder, path)
    if not is_headed and not table.is_named and audio == 0 and len(rows[0]) <= 3:
        return guess_columns(rows), False  # as LJSpeech and this program write them
    names = table.names if is_headed or table.is_named else []
    return columns_by_content(rows[is_headed:], names, audio, folder), True


def _is_text(folder: Folder, path: Path, words: Iterable[str]) -> bool:
    """Return whether a file is a text with commas and no table: the words that begin its lines name no recordings."""
    may_be_text = path.suffix.lower() == ".txt" and not re.search(r"[|\t]", folder.text(path))
    return may_be_text and not folder.are_names(words, path)


def _has_header(table: Table, audio: int, folder: Folder, path: Path) -> bool:
    """Return whether the first line names columns in words that nobody knew: the next one leads to a recording."""
    if table.is_named or len(table.lines) < 2:
        return False
    (_, first), (_, second) = table.lines[:2]
    is_name = re.search(r"\d", first[audio]) is None and not is_media(Path(first[audio]))
    in_words = all(len(cell.split()) <= MAX_NAME_WORDS for cell in first)
    return is_name and in_words and not folder.locate(first[audio], path) and bool(folder.locate(second[audio], path))


def without_header(table: Table, columns: Columns, folder: Folder, path: Path) -> Sequence[Line]:
    """Return the lines of a table that are not its header."""
    if columns.audio is None:
        return table.lines if table.is_named else table.lines[1:]
    words = {name.casefold() for name in folder.columns.values() if not name.isdecimal()}
    is_chosen = not table.is_named and not words.isdisjoint(map(str.casefold, table.names))
    return table.lines[1:] if is_chosen or _has_header(table, columns.audio, folder, path) else table.lines


def describe_columns(columns: Columns, names: Sequence[str]) -> str:
    """Write columns as ``parse_columns`` reads them."""
    places = columns._asdict()
    return ",".join(
        f"{field}={names[at] if at < len(names) and names[at] else at + 1}"
        for field in FIELDS
        if (at := places[field]) is not None
    )


def given_columns(table: Table, named: dict[str, str]) -> Columns | None:
    """Return the columns that the person named; None if this table has no such columns."""
    names = [name.casefold() for name in table.names]
    places = {}
    for field, name in named.items():
        if name.casefold() in names:
            places[field] = names.index(name.casefold())
        elif name.isdecimal() and 0 < int(name) <= len(names):
            places[field] = int(name) - 1
        else:
            return None
    return Columns(places.pop("audio", None), places.pop("text"), **places) if "text" in places else None


def _share(folder: Folder, path: Path, column: Sequence[str]) -> float:
    return sum(folder.locate(cell, path) is not None for cell in column) / len(column)


def _without_audio(table: Table, rows: Sequence[Sequence[str]], folder: Folder, path: Path) -> Columns | None:
    """Return the columns of a list of the times and texts of the one recording that has its name."""
    names = [name.casefold() for name in table.names]
    if not {"start", "text"} <= set(names) or not folder.partners(path)[0] or not rows:
        return None
    places = {name: names.index(name) if name in names else None for name in ("start", "end", "duration", "speaker")}
    return Columns(None, names.index("text"), **places)


# Long because each kind of column is looked for among those that the kinds before it left.
def columns_by_content(
    rows: Sequence[Sequence[str]], names: Sequence[str], audio: int, folder: Folder
) -> Columns | None:
    """Tell columns by what is in them: letters of the language, seconds, few distinct short values."""
    columns = list(zip(*rows, strict=False))
    names = [*names, *[""] * len(columns)]  # a header may be shorter than its lines
    others = [at for at in range(len(columns)) if at != audio]
    numbers = [at for at in others if all(NUMBER.fullmatch(cell.strip()) for cell in columns[at])]
    texts = [at for at in others if at not in numbers]
    worth = {at: _letters(columns[at], folder.language) for at in texts}
    if not any(worth.values()):
        return None
    text = max(texts, key=lambda at: worth[at])
    speakers = [at for at in texts if at != text and _may_be_speaker(columns[at], names[at])]
    by_name = {field: at for at in numbers for field in FIELDS[3:] if field in names[at].casefold()}
    if not by_name and len(numbers) == 2:
        first, second = (list(map(_number, columns[at])) for at in numbers)
        if all(start < end for start, end in zip(first, second, strict=True)):
            by_name = {"start": numbers[0], "end": numbers[1]}
    return Columns(audio, text, speakers[0] if speakers else None, **by_name)


def _number(cell: str) -> float:
    return float(cell.strip().replace(",", "."))


def _letters(column: Sequence[str], language: str) -> float:
    """Return how much a column looks like text to speak: letters, in the script of the language, in distinct cells."""
    whole = "".join(column)
    letters, ethiopic = count_letters(whole)
    in_script = (ethiopic if language == "am" else letters - ethiopic) / max(1, letters)
    spaces = sum(map(str.isspace, whole))
    distinct = len(set(column)) / len(column)
    # letters with a space between each are spelled out; a path has no spaces at all
    is_spelled = spaces * 2 > letters
    return 0.0 if is_spelled else math.sqrt(letters / len(column)) * (0.05 + in_script) * distinct


def _may_be_speaker(column: Sequence[str], name: str) -> bool:
    values = {cell.strip() for cell in column}
    if values & {""} or {value.casefold() for value in values} <= NOT_SPEAKERS or all(map(_is_language, values)):
        return False
    is_named = any(sign in name.casefold() for sign in ("speak", "spk", "reader", "voice"))
    return is_named or (len(values) * 3 <= max(3, len(column)) and all(len(value) <= 40 for value in values))


def _is_language(value: str) -> bool:
    try:
        return bool(canonical(value))
    except UnknownLanguageError:
        return value.casefold() in {"all_zh", "all_ja", "auto"}
