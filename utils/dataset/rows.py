"""The rows of metadata lists as they stand, faults included, each with its line."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from utils.core.errors import DataError
from utils.dataset.coqui_lists import FILES, HEADER


class Row(NamedTuple):
    """One line of a list.

    Attributes:
        list: The file that it stands in.
        line: Its number, from 1.
        audio: Path as it is written.
        text: What is said.
        speaker: Who speaks.
        fault: What is wrong with the line itself; empty when it has the right number of cells.
    """

    list: Path
    line: int
    audio: str
    text: str
    speaker: str
    fault: str = ""

    @property
    def path(self) -> Path:
        """Return where the audio lies; relative paths begin at the folder of the list."""
        return self.list.parent / self.audio


def list_files(place: Path) -> list[Path]:
    """Return the lists of a dataset folder, or the list itself."""
    if place.is_file():
        return [place]
    found = [place / name for name in FILES.values() if (place / name).is_file()]
    if not found:
        raise DataError(f"{place} holds no {' or '.join(FILES.values())}.", hint="Choose a dataset folder or a list.")
    return found


def read_list(path: Path) -> Iterator[Row]:
    """Yield the rows of a list with the header ``audio_file|text|speaker_name``."""
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as UTF-8 text: {error}.") from error
    if lines[0].strip() != HEADER:
        raise DataError(
            f"{path}:1: the header is {lines[0][:60]!r} instead of {HEADER!r}.",
            hint="Other lists are taken in by: python -m utils prepare.",
        )
    for number, line in enumerate(lines[1:], 2):
        cells = line.rstrip("\r").split("|")
        if len(cells) == 3:
            yield Row(path, number, *cells)
        elif line.strip():
            audio, text, speaker = [*cells, "", ""][:3]
            yield Row(path, number, audio, text, speaker, f"{len(cells)} cells instead of 3")
