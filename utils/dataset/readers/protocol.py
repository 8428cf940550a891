"""What a reader is: it recognises a layout by its files, and reads rows of audio and text from them.

Each layout is a module of the same shape, in the table of ``registry``::

    NAME, IS_LIST = "Kaldi", True  # a list names many recordings; audio beside it that it does not name is not used
    def recognise(folder: Folder) -> Match | None: ...
    def read(folder: Folder, path: Path) -> Iterator[Item]: ...

A reader finds nothing on the disk itself: it asks the ``Folder``. What it does not yield is found by ``collection``,
which names every text that was not used, and every file that a reader could not parse.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from utils.core.facts import Fact
from utils.dataset.facts import Bad
from utils.dataset.readers.facts import LineFault, LineUnreadable
from utils.dataset.readers.folder import Folder
from utils.recognition.spans import Span


class Match(NamedTuple):
    """The files of a layout in a folder, and by which it was recognised."""

    confidence: float  # between 0 and 1; of two readers of a file, the surer one reads it
    reason: str  # the names that gave it away
    files: tuple[Path, ...]  # with text, the best first
    others: tuple[Path, ...]  # that belong to it and have no text to speak
    unused: tuple[Bad, ...]  # that a better one of the files replaces


class Row(NamedTuple):
    """The text of a recording, or of a part of it."""

    source: Path  # the file with the text
    audio: Path | str  # found already, or as it is written there
    text: str
    line: int = 0
    speaker: str = ""
    span: Span | None = None  # of the whole recording if none
    is_machine: bool = False  # written by a recogniser, so a person's text comes first


class Note(NamedTuple):
    """Something to know about the recordings that a text is used for."""

    source: Path
    fact: Fact


class Spare(NamedTuple):
    """Audio that is left out on purpose, such as the second microphone."""

    audio: Path
    fact: Fact


Item = Row | Note | Spare | Bad | Fact  # a fact alone is about the whole scan


class Reader(Protocol):
    """A module that reads a layout."""

    NAME: str
    IS_LIST: bool

    def recognise(self, folder: Folder) -> Match | None: ...

    def read(self, folder: Folder, path: Path) -> Iterator[Item]: ...


def matched(
    confidence: float, files: Sequence[Path], others: Sequence[Path] = (), unused: Sequence[Bad] = ()
) -> Match | None:
    """Return a match of these files, if there are any."""
    names = ", ".join(dict.fromkeys(path.name for path in files[:3]))
    return Match(confidence, names, tuple(files), tuple(others), tuple(unused)) if files or unused else None


def span_in(values: Mapping[str, object]) -> Span | None:
    """Return the times in an object, if there are any."""
    start = values.get("start")
    end = values.get("end")
    are_times = isinstance(start, (int, float)) and isinstance(end, (int, float))
    return Span(float(start), float(end)) if are_times else None  # type: ignore[arg-type]  # checked above


def unreadable(path: Path, number: int, line: str, fault: LineFault = "times") -> Bad:
    return Bad(path, LineUnreadable(number, fault, line[:60]))
