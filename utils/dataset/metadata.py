"""The metadata lists of a dataset, in the format of coqui-tts: ``metadata_train.csv`` and ``metadata_eval.csv``.

They are an export of the store. An edit writes them a moment later, so that editing one of 50,000 clips does not wait
for 50,000 lines; whoever reads them calls ``write_lists`` first, which does nothing while they are up to date.
"""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from utils.core.errors import AmharicTtsError, DataError
from utils.core.storage import file_lock, read_text, write_atomically
from utils.dataset.clip import Split
from utils.dataset.store import Store

logger = logging.getLogger(__name__)
HEADER = "audio_file|text|speaker_name"
LANGUAGE_FILE, WAVS = "lang.txt", "wavs"
FILES: dict[Split, str] = {"train": "metadata_train.csv", "eval": "metadata_eval.csv"}
DELAY = 1.0  # seconds after the last edit
_timers: dict[Path, threading.Timer] = {}
_timers_lock = threading.Lock()


class Row(NamedTuple):
    """A line of a metadata list."""

    list: Path
    line: int  # from 1
    audio: str  # as written; relative paths start at the folder of the list
    text: str
    speaker: str
    problem: str = ""  # empty if the line has three cells

    @property
    def path(self) -> Path:
        return self.list.parent / self.audio


def write_lists(folder: Path, language: str | None = None) -> None:
    """Write the lists of the kept clips if they are out of date, and a language beside them if one is given."""
    if language is not None:
        _replace(folder / LANGUAGE_FILE, f"{language}\n")
    store = Store(folder)
    exist = all((folder / name).is_file() for name in FILES.values())
    if not store.exists or (exist and store.meta("lists_revision") == store.meta("revision")):
        return
    with file_lock(folder / ".lists.lock"), store.reading() as db:
        revision = store.meta("revision")
        query = "SELECT audio, text, speaker FROM clips WHERE status = 'kept' AND split = ? ORDER BY number"
        for split, name in FILES.items():
            lines = [format_row(*row) for row in db.execute(query, [split])]
            _replace(folder / name, "\n".join([HEADER, *lines, ""]))
    store.set_meta("lists_revision", revision)


def write_lists_later(folder: Path) -> None:
    """Write the lists in the background, a moment after the last edit; a program that ends waits for it."""

    def write() -> None:
        with _timers_lock:
            _timers.pop(folder, None)
        try:
            write_lists(folder)
        except (AmharicTtsError, OSError) as error:  # the next reader tries again and reports it
            logger.warning("The metadata lists were not written: %s", error)

    with _timers_lock:
        if folder in _timers:
            _timers[folder].cancel()
        _timers[folder] = threading.Timer(DELAY, write)
        _timers[folder].start()


def _replace(path: Path, text: str) -> None:
    if not path.is_file() or path.read_bytes() != text.encode():
        write_atomically(path, text)


def format_row(audio: str, text: str, speaker: str) -> str:
    """Write one line that every reader of such lists splits in the same way."""
    return "|".join(map(plain, (audio, text, speaker)))


def plain(text: str) -> str:
    """Leave out what would break the line.

    Plain coqui-tts reads the lists with quoting on, and removes straight quotes from the text later anyway.
    """
    return " ".join(text.replace("|", " ").replace('"', "").split())


def read_language(folder: Path) -> str:
    """Return the language of a dataset; Amharic if it does not say."""
    path = folder / LANGUAGE_FILE
    return read_text(path).strip() if path.is_file() else "am"


def list_files(path: Path) -> list[Path]:
    """Return the lists of a dataset folder, or the list itself."""
    if path.is_file():
        return [path]
    write_lists(path)
    lists = [path / name for name in FILES.values() if (path / name).is_file()]
    if not lists:
        raise DataError(f"{path} has no {' or '.join(FILES.values())}.", hint="Choose a dataset folder or a list.")
    return lists


def read_list(path: Path) -> Iterator[Row]:
    """Yield the rows of a list with the header ``audio_file|text|speaker_name``."""
    try:
        lines = path.read_bytes().decode("utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as UTF-8 text: {error}.") from error
    if lines[0].strip() != HEADER:
        raise DataError(
            f"{path}:1: the header is {lines[0][:60]!r} instead of {HEADER!r}.",
            hint="Import other lists with: python -m utils prepare.",
        )
    for number, line in enumerate(lines[1:], 2):
        cells = line.rstrip("\r").split("|")
        if line.strip():
            audio, text, speaker, *_ = [*cells, "", ""]
            problem = "" if len(cells) == 3 else f"{len(cells)} cells instead of 3"
            yield Row(path, number, audio, text, speaker, problem)
