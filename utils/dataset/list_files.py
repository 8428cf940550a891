"""Lists of clips as people have them: comma, tab or pipe, with a header or without, in any encoding."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from utils.core.errors import DataError
from utils.dataset.encodings import read_any

AUDIO = "audio_file audio_path audio_filepath audio file_name filename file path wav_path wav_file wav clip id".split()
TEXT = (
    "normalized_text normalised_text normalized_transcription normalized text sentence transcription transcript "
    "raw_transcription raw_text utterance".split()
)
SPEAKER = "speaker_name speaker_id speaker client_id reader voice".split()
SEPARATORS = "|\t,;"
NAME_WORDS = 3  # a speaker has no longer name; a longer third column is the text again


@dataclass(frozen=True, slots=True)
class Listed:
    """One line of a list."""

    line: int
    audio: str
    text: str
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """The lines of a list, and what is wrong with others."""

    rows: tuple[Listed, ...]
    faults: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Columns:
    """Where in a row the audio, the text and the speaker stand; None when there is no such column."""

    audio: int
    text: int
    speaker: int | None = None
    plain_text: int | None = None  # read where the column of the text is empty


Line = tuple[int, list[str]]


def read_listing(path: Path) -> Listing:
    """Read a list; a line with another number of cells than the rest is a fault and left out."""
    text = read_any(path)
    lines, faults = _cells(text.text)
    if max((len(cells) for _, cells in lines), default=0) < 2:
        raise DataError(f"{path} holds no line of two cells or more.", hint="Each line is: file|text|speaker.")
    columns = named(lines[0][1])
    body = lines[1:] if columns else lines
    width = len(lines[0][1]) if columns else _usual_width(body)
    good = [(line, cells) for line, cells in body if len(cells) == width]
    faults += [f"line {line}: {len(cells)} cells instead of {width}" for line, cells in body if len(cells) != width]
    places = columns or _guessed([cells for _, cells in good])
    return Listing(tuple(_listed(line, cells, places) for line, cells in good), (*text.warnings, *faults))


def _usual_width(lines: Iterable[Line]) -> int:
    return Counter(len(cells) for _, cells in lines if len(cells) > 1).most_common(1)[0][0]


def named(header: Sequence[str]) -> Columns | None:
    """Find the columns by their names; None when the names tell no audio or no text."""
    names = [name.strip().casefold() for name in header]
    audio, text, speaker = ([names.index(name) for name in known if name in names] for known in (AUDIO, TEXT, SPEAKER))
    if not audio or not text:
        return None
    return Columns(audio[0], text[0], speaker[0] if speaker else None, text[1] if len(text) > 1 else None)


def _cells(text: str) -> tuple[list[Line], list[str]]:
    """Take the lines apart with the separator that most of them share."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    separator = _separator([line for _, line in lines])
    if separator in "|\t":  # such lists are written without quoting; some programs quote all the same
        return [(number, [_unquoted(cell) for cell in line.split(separator)]) for number, line in lines], []
    try:
        return list(_quoted(text.split("\n"), separator)), []
    except csv.Error:
        return _line_by_line(lines, separator)


def _separator(lines: Sequence[str]) -> str:
    sample = lines[:1000]
    counts = {separator: sum(separator in line for line in sample) for separator in SEPARATORS}
    return max(SEPARATORS, key=lambda separator: counts[separator] * 2 > len(sample))


def _quoted(lines: Iterable[str], separator: str) -> Iterator[Line]:
    reader = csv.reader((f"{line}\n" for line in lines), delimiter=separator, strict=True, skipinitialspace=True)
    first = 1
    for cells in reader:
        if any(cell.strip() for cell in cells):
            yield first, [" ".join(cell.split()) for cell in cells]
        first = reader.line_num + 1


def _line_by_line(lines: Iterable[tuple[int, str]], separator: str) -> tuple[list[Line], list[str]]:
    """Save what can be saved when a quotation mark does not close."""
    good: list[Line] = []
    faults = []
    for number, line in lines:
        try:
            good += [(number, cells) for _, cells in _quoted([line], separator)]
        except csv.Error:
            faults.append(f"line {number}: a quotation mark is not closed")
    return good, faults


def _unquoted(cell: str) -> str:
    cell = cell.strip()
    inner = cell[1:-1]
    if len(cell) >= 2 and cell[0] == cell[-1] == '"' and '"' not in inner.replace('""', ""):
        return inner.replace('""', '"')
    return cell


def _guessed(rows: Sequence[Sequence[str]]) -> Columns:
    """Read a list without a header: file, text, then a speaker or (LJSpeech) the text as it is spoken."""
    third = [cells[2] for cells in rows if len(cells) > 2]
    if not third:
        return Columns(0, 1)
    with_ending = sum("." in Path(cells[0].replace("\\", "/")).name for cells in rows) * 2 > len(rows)
    long = any(len(cell.split()) > NAME_WORDS for cell in third)
    repeated = len(set(third)) * 2 <= len(third)
    if not long and (repeated or with_ending):
        return Columns(0, 1, speaker=2)
    return Columns(0, 2, plain_text=1)


def _listed(line: int, cells: Sequence[str], columns: Columns) -> Listed:
    text = cells[columns.text]
    if not text.strip() and columns.plain_text is not None:
        text = cells[columns.plain_text]
    speaker = "" if columns.speaker is None else cells[columns.speaker]
    return Listed(line, cells[columns.audio].strip(), " ".join(text.split()), speaker.strip())
