"""Text files and clip lists as people write them.

A text may be UTF-8, UTF-16, a Windows code page, or decoded with the wrong one. A list may be separated by commas, tabs
or pipes, with or without a header; ``AudioFinder`` locates the files that it names, only in its folder.
"""

import codecs
import csv
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from utils.core.errors import DataError, StorageError
from utils.core.paths import resolve_inside
from utils.core.storage import parse_json

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
JSON_LINES = frozenset({".jsonl", ".ndjson", ".json"})  # one object per line, as NeMo writes manifest.json
LISTS = frozenset({".csv", ".tsv", ".jsonl", ".ndjson"})
SEPARATORS = "|\t,;"
MAX_NAME_WORDS = 3  # a longer third column is the text again, not a speaker
AUDIO_SUFFIXES = (".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a", ".webm")  # a list may leave them out
FOLDERS = ("", "wavs", "wav", "clips", "audio", "audios", "data")  # where the files of a list may be


def read_any_encoding(path: Path) -> tuple[str, list[str]]:
    """Read a text file with newlines as line ends, and repair wrongly decoded text.

    Return the text, and a warning for everything that was repaired or lost.
    """
    try:
        if path.stat().st_size > MAX_BYTES:
            raise DataError(f"{path} is larger than {MAX_BYTES // 1_000_000} MB, too large for a list or subtitles.")
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.", hint="Check its name and permissions.") from error
    decoded, warnings = _decode(raw)
    text = decoded
    for _ in range(3):  # text can be decoded wrongly several times in a row
        text = CP1252_RUN.sub(_repair_run, text)
    if text != decoded:
        warnings.append("The characters had been decoded wrongly (such as áˆ° for ሰ) and were repaired.")
    return text.replace("\r\n", "\n").replace("\r", "\n"), warnings


def name_key(name: str) -> str:
    """Return a file name without differences in case and Unicode form."""
    return unicodedata.normalize("NFC", name).casefold()


def is_garbled(text: str) -> bool:
    """Return whether characters are lost: replacement marks, parts of characters, or mostly question marks."""
    questions = text.count("?")
    lost = REPLACEMENT in text or BROKEN_CHARACTER.search(text)
    return bool(lost) or (questions >= 3 and questions * 2 > len("".join(text.split())))


def _decode(raw: bytes) -> tuple[str, list[str]]:
    """Decode by the byte order mark, as UTF-8, as UTF-16 without a mark, or else as cp1252."""
    for mark, name in BOMS:
        if raw.startswith(mark):
            return _decode_lossy(raw, name)
    if b"\0" in raw[:4096]:
        # the zero bytes of ASCII characters, which every list and subtitle file has, show the byte order
        even = raw[0:4096:2].count(0)
        return _decode_lossy(raw, "utf-16-be" if even > raw[1:4096:2].count(0) else "utf-16-le")
    text, warnings = _decode_lossy(raw, "utf-8")
    # apart from a few damaged bytes
    if text.encode() == raw or text.count(REPLACEMENT) < len(UTF8_CHARACTER.findall(raw)):
        return text, warnings
    text = "".join(CP1252.get(byte, chr(byte)) for byte in raw)
    return text, ["It is not UTF-8 and was read as Windows-1252. Save it as UTF-8 to be sure."]


def _decode_lossy(raw: bytes, encoding: str) -> tuple[str, list[str]]:
    text = raw.decode(encoding, "replace").removeprefix("\ufeff")
    lost = text.count(REPLACEMENT)
    return text, [f"{lost} damaged characters could not be read as {encoding.upper()}."] if lost else []


def _repair_run(run: re.Match[str]) -> str:
    """Decode the UTF-8 characters in a run of cp1252 characters, and leave the others."""
    parts, end = [], 0
    for match in UTF8_CHARACTER.finditer(bytes(CP1252_BYTES[character] for character in run[0])):
        try:
            decoded = match[0].decode("utf-8")
        except UnicodeDecodeError:
            decoded = run[0][match.start() : match.end()]
        parts += [run[0][end : match.start()], decoded]
        end = match.end()
    return "".join([*parts, run[0][end:]])


class ListedClip(NamedTuple):
    """One line of a list."""

    line: int
    audio: str
    text: str
    speaker: str = ""


class Listing(NamedTuple):
    """The usable lines of a list, and what is wrong with the others."""

    clips: list[ListedClip]
    problems: list[str]


class Columns(NamedTuple):
    """The positions of the columns; None if there is no such column."""

    audio: int
    text: int
    speaker: int | None = None
    other_text: int | None = None  # used where the text column is empty


Line = tuple[int, list[str]]  # its number and its cells


def read_listing(path: Path) -> Listing:
    """Read a list; a line with another number of cells than the rest is a problem and left out."""
    text, warnings = read_any_encoding(path)
    if path.suffix.lower() in JSON_LINES:
        clips, problems = _read_json_lines(text)
        return Listing(clips, [*warnings, *problems])
    lines, problems = _split_cells(text)
    if max((len(cells) for _, cells in lines), default=0) < 2:
        raise DataError(f"{path} has no line with two or more columns.", hint="Each line is: file|text|speaker.")
    columns = find_columns(lines[0][1])
    if columns:
        width, lines = len(lines[0][1]), lines[1:]
    else:
        width = Counter(len(cells) for _, cells in lines if len(cells) > 1).most_common(1)[0][0]
    problems += [f"line {line}: {len(cells)} cells instead of {width}" for line, cells in lines if len(cells) != width]
    lines = [(line, cells) for line, cells in lines if len(cells) == width]
    columns = columns or _guess_columns([cells for _, cells in lines])
    clips = []
    for line, cells in lines:
        written = cells[columns.text]
        if not written.strip() and columns.other_text is not None:
            written = cells[columns.other_text]
        speaker = "" if columns.speaker is None else cells[columns.speaker].strip()
        clips.append(ListedClip(line, cells[columns.audio].strip(), " ".join(written.split()), speaker))
    return Listing(clips, [*warnings, *problems])


def _read_json_lines(text: str) -> tuple[list[ListedClip], list[str]]:
    """Read one object per line, with the keys that the columns of other lists have."""
    clips, problems = [], []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        values = json_object(line)
        if not (columns := find_columns(list(values))):
            problems.append(f"line {number}: not an object with the path of the audio and a text")
            continue
        cells = [value.get("path") if isinstance(value, dict) else value for value in values.values()]
        audio, written, other, speaker = (
            "" if at is None or cells[at] is None else " ".join(str(cells[at]).split())
            for at in (columns.audio, columns.text, columns.other_text, columns.speaker)
        )
        clips.append(ListedClip(number, audio, written or other, speaker))
    return clips, problems


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
    audio, text, speaker = ([names.index(name) for name in known if name in names] for known in (AUDIO, TEXT, SPEAKER))
    if not audio or not text:
        return None
    return Columns(audio[0], text[0], speaker[0] if speaker else None, text[1] if len(text) > 1 else None)


def _guess_columns(rows: Sequence[Sequence[str]]) -> Columns:
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


def _split_cells(text: str) -> tuple[list[Line], list[str]]:
    """Split the lines at the separator that most of them share; also return the problems."""
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    sample = [line for _, line in lines[:1000]]
    counts = {separator: sum(separator in line for line in sample) for separator in SEPARATORS}
    separator = max(SEPARATORS, key=lambda separator: counts[separator] * 2 > len(sample))
    if separator in "|\t":  # such lists are written without quotes; some programs quote anyway
        return [(number, [_unquote(cell) for cell in line.split(separator)]) for number, line in lines], []
    try:
        return list(_read_csv(text.split("\n"), separator)), []
    except csv.Error:  # a quotation mark is not closed: find the line
        good: list[Line] = []
        problems = []
        for number, line in lines:
            try:
                good += [(number, cells) for _, cells in _read_csv([line], separator)]
            except csv.Error:
                problems.append(f"line {number}: a quotation mark is not closed")
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


class AudioFinder:
    """Finds the files that a list in a folder names; each folder is read once, because lists are long."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder.resolve()
        self.names: dict[Path, dict[str, str]] = {}

    def find(self, written: str) -> Path:
        """Return the file that a list names; raise if it is missing or outside the folder."""
        if not written or "\0" in written:
            raise DataError("no audio file is given.")
        name = Path(written.replace("\\", "/"))
        is_outside, key = not (self.root / name).resolve().is_relative_to(self.root), name_key(name.name)
        for folder in FOLDERS:
            parent = self.root / folder / name.parent
            if parent not in self.names:
                self.names[parent] = _file_names(parent)
            names = self.names[parent]
            for suffix in ("", *AUDIO_SUFFIXES):
                if (real := names.get(name.name + suffix) or names.get(key + suffix)) is None:
                    continue
                try:
                    return resolve_inside(self.root, parent / real)
                except StorageError:  # a link that leads elsewhere
                    is_outside = True
        if is_outside:
            raise DataError(f"{name} is outside the folder of the list.", hint="Copy the audio files next to the list.")
        raise DataError(f"no such audio file: {written}.", hint=f"Paths are relative to {self.folder}.")


def _file_names(folder: Path) -> dict[str, str]:
    """Map the names in a folder, and their keys without case and accent coding, to the names on disk."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_file())
    except OSError:  # no such folder
        return {}
    return {name_key(name): name for name in names} | {name: name for name in names}
