"""Datasets that somebody made already: lists beside sound files, and Parquet or Arrow tables with the sound inside.

A list never leads out of its folder. What a list names and what lies there but is named by none are both accounted for.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from utils.core.errors import AmharicTtsError, DataError
from utils.dataset.clip import Problem, Recording, ScanResult, abbreviate
from utils.dataset.list_files import named, read_listing
from utils.dataset.list_paths import SOUND, FilesNearby, each_once
from utils.dataset.sound_tables import TABLES, read_table

LIST_NAME = re.compile(r"(?i)metadata[^/]*\.(?:csv|tsv|txt)|validated\.tsv")
LISTS = frozenset({".csv", ".tsv"})


def is_dataset(path: Path) -> bool:
    """Tell a list, a table, or a folder that holds one, from a folder of plain recordings."""
    if path.is_dir():
        return bool(_lists(path) or _tables(path))
    return path.suffix.lower() in LISTS | TABLES or bool(LIST_NAME.fullmatch(path.name))


def read(path: Path, *, speaker: str = "speaker", workspace: Path | None = None) -> ScanResult:
    """Read an existing dataset: a list, a table, or the folder that holds them.

    Args:
        path: LJSpeech or ``audio_file|text|speaker_name`` lists, Parquet or Arrow files, or their folder.
        speaker: Who speaks where the dataset does not tell.
        workspace: Folder for sound that lies inside a table; without one such tables are refused.
    """
    if not path.is_dir():
        return each_once([_read_file(path, speaker, workspace)])
    files = _lists(path) or _tables(path) or sorted(_tables_below(path))
    if not files:
        raise DataError(f"{path} holds no list and no table of clips.", hint="A list is called metadata.csv.")
    found = each_once([_read_file(file, speaker, workspace) for file in files])
    return ScanResult(found.recordings, found.problems + tuple(_unnamed(path, found))) if _lists(path) else found


def _lists(folder: Path) -> list[Path]:
    """Return the lists of a folder: those with a known name, or else those with a known header."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    by_name = [path for path in files if LIST_NAME.fullmatch(path.name)]
    return by_name or [path for path in files if path.suffix.lower() in LISTS and _has_header(path)]


def _has_header(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            head = file.readline(4096).replace(b"\0", b"").decode("utf-8", "ignore").strip("\ufeff\r\n")
    except OSError:
        return False
    return any(named(head.split(separator)) for separator in "|\t,;")


def _tables(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.suffix in TABLES and not path.name.startswith("cache-"))


def _tables_below(folder: Path) -> Iterator[Path]:
    for below in folder.rglob("*"):
        if below.is_dir():
            yield from _tables(below)


def _read_file(path: Path, speaker: str, workspace: Path | None) -> ScanResult:
    if path.suffix.lower() not in TABLES:
        return _from_list(path, speaker)
    return read_table(path, workspace, speaker)


def _from_list(path: Path, speaker: str) -> ScanResult:
    listing = read_listing(path)
    recordings, problems = [], [Problem(path, fault) for fault in listing.faults]
    files = FilesNearby(path.parent)
    for row in listing.rows:
        try:
            file = files.find(row.audio)
        except AmharicTtsError as error:
            problems.append(Problem(path, f"line {row.line}: {error}"))
            continue
        warnings = () if row.text else (f"{path.name}, line {row.line}: no text is given.",)
        recordings.append(Recording(file, row.speaker or speaker, row.text, warnings=warnings))
    return ScanResult(tuple(recordings), tuple(problems))


def _unnamed(folder: Path, found: ScanResult) -> Iterator[Problem]:
    """Tell of sound that lies in the folder of the lists and is named by none of them."""
    named_files = {recording.path for recording in found.recordings}
    below = (Path(here, name) for here, _, names in os.walk(folder.resolve()) for name in names)
    others = sorted(path for path in below if path.suffix.lower() in SOUND and path not in named_files)
    if others:
        yield Problem(
            folder, f"{len(others)} sound files are named by no line: {abbreviate(path.name for path in others)}."
        )
