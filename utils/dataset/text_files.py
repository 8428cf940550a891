"""Text files and clip lists as people write them.

A text may be UTF-8, UTF-16, a Windows code page, or decoded with the wrong one. A list may be separated by commas, tabs
or pipes, with or without a header, or consist of JSON objects.
"""

import codecs
import contextlib
import csv
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from utils.core.facts import Fact
from utils.core.storage import parse_json
from utils.dataset.readers.facts import ForeignFileError, LineUnreadable, TextRepair, TextRepaired

BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # starts like UTF-16, so it is tried first
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
MAX_BYTES = 200_000_000  # the text of 10,000 hours is far smaller
REPLACEMENT = "\ufffd"

# The characters of cp1252 by their bytes; its five unassigned bytes are themselves, as in browsers.
CP1252 = {byte: bytes([byte]).decode("cp1252", "ignore") or chr(byte) for byte in range(0x80, 0x100)}
# The bytes of these characters, and of C1 controls: Latin-1 has them where cp1252 has letters.
CP1252_BYTES = {chr(byte): byte for byte in CP1252} | {character: byte for byte, character in CP1252.items()}
CP1252_RUN = re.compile("[" + re.escape("".join(CP1252_BYTES)) + "]{2,}")
UTF8_CHARACTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
# What is left of an Ethiopic character (bytes E1 88..8D, E2 B6/B7, EA AC) if one of its three bytes is lost.
BROKEN_CHARACTER = re.compile("á[ˆ‰Š‹Œ\x88-\x8d]|â[¶·]|ê¬")

AUDIO = "audio_file audio_path audio_filepath audio file_name filename file path wav_path wav_file wav clip id".split()
TEXT = (
    "normalized_text normalised_text normalized_transcription normalized text sentence transcription transcript "
    "raw_transcription raw_text utterance".split()
)
SPEAKER = "speaker_name speaker_id speaker client_id reader voice".split()
TIMES = ("start start_time offset begin onset".split(), "end end_time stop offset_end".split(), "duration dur".split())
JSON_LINES = frozenset({".jsonl", ".ndjson", ".json"})  # one object per line, as NeMo writes manifest.json
LISTS = frozenset({".csv", ".tsv", ".jsonl", ".ndjson"})
SEPARATORS = "|\t,;"
MAX_NAME_WORDS = 3  # a longer third column is the text again, not a speaker
MAX_LINES = 3_000_000  # of a list; a corpus of 10,000 hours has as many


def read_any_encoding(path: Path) -> tuple[str, list[Fact]]:
    """Read a text file with newlines as line ends, and repair wrongly decoded text; also return the repairs."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise ForeignFileError(path, "too_large", f"{MAX_BYTES // 1_000_000} MB")
        raw = path.read_bytes()
    except OSError as error:
        raise ForeignFileError(path, "unreadable", str(error.strerror)) from error
    decoded = _decode(raw)
    repairs: list[Fact] = []
    if decoded.repair:
        repairs.append(TextRepaired(path.name, decoded.repair, decoded.lost, decoded.encoding))
    text = decoded.text
    for _ in range(3):  # text can be decoded wrongly several times in a row
        text = CP1252_RUN.sub(_repair_run, text)
    if text != decoded.text:
        repairs.append(TextRepaired(path.name, "decoded"))
    return text.replace("\r\n", "\n").replace("\r", "\n"), repairs


def name_key(name: str) -> str:
    """Return a file name without differences in case and Unicode form."""
    return unicodedata.normalize("NFC", name).casefold()


def is_garbled(text: str) -> bool:
    """Return whether characters are lost: replacement marks, parts of characters, or mostly question marks."""
    questions = text.count("?")
    lost = REPLACEMENT in text or BROKEN_CHARACTER.search(text)
    return bool(lost) or (questions >= 3 and questions * 2 > len("".join(text.split())))


def is_ethiopic(letter: str) -> bool:
    return "\u1200" <= letter <= "\u139f"


def count_letters(text: str) -> tuple[int, int]:
    """Return how many letters a text has, and how many of them are Ethiopic."""
    letters = list(filter(str.isalpha, text))
    return len(letters), sum(map(is_ethiopic, letters))


def decode(raw: bytes) -> str:
    """Decode the beginning of a text file as the whole is decoded."""
    return _decode(raw).text


class _Decoded(NamedTuple):
    text: str
    repair: TextRepair | None = None
    lost: int = 0  # characters
    encoding: str = ""  # that they were lost in


def _decode(raw: bytes) -> _Decoded:
    """Decode by the byte order mark, as UTF-8, as UTF-16 without a mark, or else as cp1252."""
    for mark, name in BOMS:
        if raw.startswith(mark):
            return _decode_lossy(raw, name)
    if b"\0" in raw[:4096]:
        # the zero bytes of ASCII characters, which every list and subtitle file has, show the byte order
        even = raw[0:4096:2].count(0)
        return _decode_lossy(raw, "utf-16-be" if even > raw[1:4096:2].count(0) else "utf-16-le")
    decoded = _decode_lossy(raw, "utf-8")
    # apart from a few damaged bytes
    if decoded.text.encode() == raw or decoded.lost < len(UTF8_CHARACTER.findall(raw)):
        return decoded
    return _Decoded("".join(CP1252.get(byte, chr(byte)) for byte in raw), "windows")


def _decode_lossy(raw: bytes, encoding: str) -> _Decoded:
    text = raw.decode(encoding, "replace").removeprefix("\ufeff")
    lost = text.count(REPLACEMENT)
    return _Decoded(text, "lost", lost, encoding.upper()) if lost else _Decoded(text)


def _repair_run(run: re.Match[str]) -> str:
    """Decode the UTF-8 characters in a run of cp1252 characters, and leave the others."""
    parts = []
    end = 0
    for match in UTF8_CHARACTER.finditer(bytes(CP1252_BYTES[character] for character in run[0])):
        try:
            decoded = match[0].decode("utf-8")
        except UnicodeDecodeError:
            decoded = run[0][match.start() : match.end()]
        parts += [run[0][end : match.start()], decoded]
        end = match.end()
    return "".join([*parts, run[0][end:]])


class MetadataRow(NamedTuple):
    """A usable line of a list."""

    list: Path
    line: int  # from 1
    audio: str  # as written; relative paths start at the folder of the list
    text: str
    speaker: str

    @property
    def path(self) -> Path:
        return self.list.parent / self.audio


class Listing(NamedTuple):
    """The usable lines of a list, and what is wrong with the others."""

    clips: list[MetadataRow]
    problems: list[Fact]


class Columns(NamedTuple):
    """The positions of the columns; None if there is no such column."""

    audio: int | None
    text: int
    speaker: int | None = None
    other_text: int | None = None  # used where the text column is empty
    start: int | None = None
    end: int | None = None
    duration: int | None = None


Line = tuple[int, list[str]]  # its number and its cells


class Table(NamedTuple):
    """The lines of a list, all with the same number of cells, and what is wrong with the others."""

    names: list[str]  # of the columns; those of an object, or the first line, which may be a header
    lines: list[Line]  # without the header if one was recognised, or there are objects
    problems: list[Fact]
    is_named: bool  # the names are certain


def read_listing(path: Path) -> Listing:
    """Read a list; a line with another number of cells than the rest is a problem and left out."""
    text, repairs = read_any_encoding(path)
    table = parse_table(text, path)
    columns = find_columns(table.names) if table.is_named else guess_columns([cells for _, cells in table.lines])
    if columns is None or columns.audio is None:
        raise ForeignFileError(path, "no_columns", ", ".join(table.names))
    clips = [
        MetadataRow(path, line, cells[columns.audio].strip(), text_of(cells, columns), cell_of(cells, columns.speaker))
        for line, cells in table.lines
    ]
    return Listing(clips, [*repairs, *table.problems])


def text_of(cells: Sequence[str], columns: Columns) -> str:
    """Return the text of a line; where its column is empty, that of the other one."""
    return cell_of(cells, columns.text) or cell_of(cells, columns.other_text)


def cell_of(cells: Sequence[str], column: int | None) -> str:
    return "" if column is None or column >= len(cells) else " ".join(cells[column].split())


def parse_table(text: str, path: Path) -> Table:
    """Parse a list of objects or of lines with cells."""
    if text.count("\n") > MAX_LINES:
        raise ForeignFileError(path, "many_lines", f"{MAX_LINES:,}")
    if path.suffix.lower() in JSON_LINES:
        return _parse_objects(text)
    lines, problems = _split_cells(text)
    if max((len(cells) for _, cells in lines), default=0) < 2:
        raise ForeignFileError(path, "no_columns")
    names = lines[0][1]
    is_named = find_columns(names) is not None
    width = len(names) if is_named else Counter(len(c) for _, c in lines if len(c) > 1).most_common(1)[0][0]
    lines = lines[is_named:]
    problems += [LineUnreadable(line, "cells", f"{len(cells)}/{width}") for line, cells in lines if len(cells) != width]
    return Table(names, [line for line in lines if len(line[1]) == width], problems, is_named)


def _parse_objects(text: str) -> Table:
    """Read one object per line, a list of objects, or an object of texts by file."""
    rows = []
    problems: list[Fact] = []
    for number, value in _json_values(text):
        if isinstance(value, dict) and value:
            rows.append((number, {str(key): plain_cell(cell) for key, cell in value.items()}))
        else:
            problems.append(LineUnreadable(number, "object"))
    names = list(dict.fromkeys(name for _, row in rows for name in row))
    return Table(
        names, [(number, [row.get(name, "") for name in names]) for number, row in rows], problems, is_named=True
    )


def _json_values(text: str) -> Iterator[tuple[int, object]]:
    """Yield the objects of a file with their lines, or their numbers in a list."""
    if text.lstrip()[:1] in {"[", "{"}:
        with contextlib.suppress(ValueError):
            whole = parse_json(text)
            if isinstance(whole, dict):
                lists = [value for value in whole.values() if isinstance(value, list)]
                texts = (
                    whole and all(isinstance(value, str) for value in whole.values()) and not find_columns(list(whole))
                )
                objects = [{"key": name, "value": value} for name, value in whole.items()] if texts else [whole]
                whole = lists[0] if len(lists) == 1 else objects
            yield from enumerate(whole, start=1)
            return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            yield number, json_object(line)


def plain_cell(value: object) -> str:
    """Return the value of a cell on one line, and of audio the path."""
    if isinstance(value, dict):
        value = value.get("path")
    return "" if value is None or isinstance(value, (bytes, list)) else " ".join(str(value).split())


def json_object(line: str) -> dict[str, object]:
    """Read a line of JSON; empty if it is not an object."""
    try:
        values = parse_json(line)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def find_columns(header: Sequence[str]) -> Columns | None:
    """Find the columns by name; None if there is no column for audio or text."""
    names = [name.strip().casefold() for name in header]
    known = ([names.index(name) for name in group if name in names] for group in (AUDIO, TEXT, SPEAKER, *TIMES))
    audio, text, speaker, start, end, duration = ([*found, None, None] for found in known)
    if audio[0] is None or text[0] is None:
        return None
    return Columns(audio[0], text[0], speaker[0], text[1], start[0], end[0], duration[0])


def guess_columns(rows: Sequence[Sequence[str]]) -> Columns:
    """Guess the columns without a header: file, text, then the speaker or (LJSpeech) the normalized text."""
    third = [cells[2] for cells in rows if len(cells) > 2]
    if not third:
        return Columns(0, 1)
    with_suffix = sum("." in Path(cells[0].replace("\\", "/")).name for cells in rows) * 2 > len(rows)
    is_text = any(len(cell.split()) > MAX_NAME_WORDS for cell in third)
    repeats = len(set(third)) * 2 <= len(third)
    if not is_text and (repeats or with_suffix):
        return Columns(0, 1, speaker=2)
    return Columns(0, 2, other_text=1)


def _split_cells(text: str) -> tuple[list[Line], list[Fact]]:
    """Split the lines at the separator that most of them share; also return the problems."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    sample = [line for _, line in lines[:1000]]
    shared = (each for each in SEPARATORS if sum(each in line for line in sample) * 2 > len(sample))
    separator = next(shared, SEPARATORS[0])
    if separator in "|\t":  # such lists are written without quotes; some programs quote anyway
        return [(number, [_unquote(cell) for cell in line.split(separator)]) for number, line in lines], []
    try:
        return list(_read_csv(text.split("\n"), separator)), []
    except csv.Error:  # a quotation mark is not closed: find the line
        return _read_each(lines, separator)


def _read_each(lines: Iterable[tuple[int, str]], separator: str) -> tuple[list[Line], list[Fact]]:
    """Read lines one by one; also return the problems."""
    good = []
    problems: list[Fact] = []
    for number, line in lines:
        try:
            good += [(number, cells) for _, cells in _read_csv([line], separator)]
        except csv.Error:
            problems.append(LineUnreadable(number, "quote"))
    return good, problems


def _read_csv(lines: Iterable[str], separator: str) -> Iterator[Line]:
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True, skipinitialspace=True)
    first = 1
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield first, [" ".join(cell.split()) for cell in cells]
        first = reader.line_num + 1


def _unquote(cell: str) -> str:
    cell = cell.strip()
    inner = cell[1:-1]
    if len(cell) >= 2 and cell[0] == cell[-1] == '"' and '"' not in inner.replace('""', ""):
        return inner.replace('""', '"')
    return cell
