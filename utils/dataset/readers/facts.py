"""What reading inputs finds, and what of them is not used, as typed facts and errors."""

from pathlib import Path
from typing import Literal

from utils.core.errors import DataError
from utils.core.facts import Fact, WarningFact


class LayoutFound(Fact):
    """Files were read in a layout; by which names it was recognised."""

    layout: str
    reason: str
    texts: int


class TextNotUsed(WarningFact):
    """A file with text is not used, or a part of it."""

    why: Literal[
        "unknown", "no_audio", "garbled", "packed", "document", "other_list", "language", "chapters", "empty", "tier"
    ]
    detail: str = ""


# Why a written name leads to no recording.
Missing = Literal["no_file", "outside", "several", "no_name"]


class ListedAudioMissing(WarningFact):
    """A recording that a text names cannot be used."""

    line: int
    name: str
    why: Missing


# What is wrong with a line.
LineFault = Literal["cells", "quote", "object", "times", "no_text"]


class LineUnreadable(WarningFact):
    """A line of a text cannot be read."""

    line: int
    issue: LineFault
    detail: str = ""


# What was changed in a text, or left out of it.
TextRepair = Literal[
    "decoded",
    "lost",
    "windows",
    "no_times",
    "notes",
    "speakers",
    "turns",
    "sorted",
    "empty",
    "reversed",
    "repeated",
    "rolling",
    "garbled",
    "ended",
    "joined",
    "hours",
    "moved",  # in datasets of earlier versions
    "late",
    "long",
    "script",
    "paired",
]


class TextRepaired(WarningFact):
    """A text was changed while it was read, or a part of it was left out."""

    name: str
    repair: TextRepair
    count: int = 0
    what: str = ""


class TextsConflict(WarningFact):
    """Several texts were given for one recording; that of a file is used, where they begin to differ."""

    name: str
    used: str
    unused: str


class LinesRepeated(WarningFact):
    """Lines say the same of a recording again."""

    count: int
    names: tuple[str, ...]


class AudioNotListed(WarningFact):
    """Audio beside a list that does not name it is not used."""

    count: int
    names: tuple[str, ...]


class AudioWithoutText(WarningFact):
    """No text came with some recordings: nothing has their name, and no list names them."""

    count: int
    names: tuple[str, ...]


class FoldersAreSpeakers(Fact):
    """Recordings lie in a folder for each speaker, by the names of the folders."""

    names: tuple[str, ...]


class TextMightExist(WarningFact):
    """A recording has no text while a text was not used, so a recogniser does not replace it unasked."""

    text: str


class MicrophoneChosen(Fact):
    """Of the recordings of a sentence by two microphones, one is used."""

    used: str


class ColumnsGuessed(WarningFact):
    """The columns of a list have other names than usual; they were recognised by their content."""

    name: str
    columns: str


class ColumnsNotUsableError(DataError):
    """The columns that were named do not fit."""

    written: str


class NotOnDisk(WarningFact):
    """An input must be unpacked or downloaded first, and no folder for it was given."""


class InputUnusable(WarningFact):
    """An input holds nothing that can be used."""

    fault: Literal["missing", "empty", "named_as_audio", "unreadable"]
    detail: str = ""


class ForeignFileError(DataError):
    """A document, archive, list or table cannot be read."""

    path: Path
    fault: Literal[
        "damaged",
        "too_large",
        "many_members",
        "many_lines",
        "bomb",
        "no_text",
        "no_cues",
        "no_subtitles",
        "no_columns",
        "no_table",
        "unreadable",
        "protected",
    ]
    detail: str = ""


class NoClipsError(DataError):
    """A preparation is finished, and no clip is in use."""

    project: str  # as it follows --project
    excluded: tuple[Fact, ...] = ()
