"""Files that a list or a table names: looked for beside it, never outside its folder, taken once."""

import os
from collections.abc import Iterable
from pathlib import Path

from utils.core.errors import DataError, StorageError
from utils.core.paths import resolve_inside
from utils.dataset.clip import Problem, Recording, ScanResult, abbreviate
from utils.dataset.pairing import key

SOUND = (".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a", ".webm")  # endings that a list may leave out
FOLDERS = ("", "wavs", "wav", "clips", "audio", "audios", "data")  # where the files of a list lie, seen from the list


class FilesNearby:
    """Finds the files of a list; each folder is listed once, because lists are long."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.base = folder.resolve()
        self.known: dict[Path, dict[str, str]] = {}

    def find(self, written: str) -> Path:
        """Return the file that a list means, or say that it is not there or lies outside."""
        name = written.replace("\\", "/")
        if not name or "\0" in name:
            raise DataError("no sound file is named.")
        if (path := self._found(Path(name))) is None:
            raise DataError(f"no such sound file: {written}.", hint=f"Paths begin at {self.folder}.")
        return path

    def _found(self, name: Path) -> Path | None:
        outside, folded = None, key(name.name)
        for folder in FOLDERS:
            parent = self.base / folder / name.parent
            names = self._names(parent)
            for ending in ("", *SOUND):
                if (real := names.get(name.name + ending) or names.get(folded + ending)) is None:
                    continue
                try:
                    return resolve_inside(self.base, parent / real)
                except StorageError as error:
                    outside = error
        if outside or not (self.base / name).resolve().is_relative_to(self.base):
            raise DataError(f"{name} lies outside the folder of the list.", hint="Copy the sound beside the list.")
        return None

    def _names(self, folder: Path) -> dict[str, str]:
        if folder not in self.known:
            self.known[folder] = _names(folder)
        return self.known[folder]


def _names(folder: Path) -> dict[str, str]:
    """Map the names in a folder, and what they are regardless of case and accents' coding, to the names on disk."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.is_file())
    except OSError:  # the folder is not there, so nothing is in it
        return {}
    return {key(name): name for name in names} | {name: name for name in names}


def each_once(parts: Iterable[ScanResult]) -> ScanResult:
    """Take a file that several lines name once, and say where they differ."""
    joined = ScanResult.joined(parts)
    first: dict[Path, Recording] = {}
    repeated: list[Path] = []
    different: list[Path] = []
    for recording in joined.recordings:
        known = first.setdefault(recording.path, recording)
        if known is not recording:
            (repeated if known.text == recording.text else different).append(recording.path)
    problems = [
        Problem(path, "Several lines name this file and give different texts; the first one was taken.")
        for path in dict.fromkeys(different)
    ]
    if repeated:
        names = abbreviate(path.name for path in repeated)
        problems.append(
            Problem(repeated[0].parent, f"{len(repeated)} lines name a file again and were skipped: {names}.")
        )
    return ScanResult(tuple(first.values()), joined.problems + tuple(problems))
