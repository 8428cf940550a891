"""Lists of clips as people write them: comma, tab or pipe, with or without a header, in any encoding.

``read_listing`` parses a list; ``AudioFinder`` locates the files that it names, only in its folder.
"""

import csv
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from utils.core.errors import DataError, StorageError
from utils.core.paths import resolve_inside
from utils.dataset.text_files import name_key, read_any_encoding

AUDIO = "audio_file audio_path audio_filepath audio file_name filename file path wav_path wav_file wav clip id".split()
TEXT = (
    "normalized_text normalised_text normalized_transcription normalized text sentence transcription transcript "
    "raw_transcription raw_text utterance".split()
)
SPEAKER = "speaker_name speaker_id speaker client_id reader voice".split()
SEPARATORS = "|\t,;"
MAX_NAME_WORDS = 3  # a longer third column is the text again, not a speaker
AUDIO_SUFFIXES = (".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a", ".webm")  # a list may leave them out
FOLDERS = ("", "wavs", "wav", "clips", "audio", "audios", "data")  # where the files of a list may be


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
    text = read_any_encoding(path)
    lines, problems = _split_cells(text.text)
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
    return Listing(clips, [*text.warnings, *problems])


def find_columns(header: Sequence[str]) -> Columns | None:
    """Find the columns by name; None if there is no column for audio or text."""
    names = [name.strip().casefold() for name in header]
    audio, text, speaker = ([names.index(name) for name in known if name in names] for known in (AUDIO, TEXT, SPEAKER))
    if not audio or not text:
        return None
    return Columns(audio[0], text[0], speaker[0] if speaker else None, text[1] if len(text) > 1 else None)


def _guess_columns(rows: Sequence[Sequence[str]]) -> Columns:
    """Guess the columns without a header: file, text, then the speaker or (LJSpeech) the normalised text."""
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
