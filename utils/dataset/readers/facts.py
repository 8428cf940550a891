"""What reading inputs finds, and what of them is not used, as typed facts and errors."""

from enum import StrEnum
from pathlib import Path

from utils.core.errors import DataError
from utils.core.facts import Fact, WarningFact


class LayoutFound(Fact):
    """Files were read in a layout; by which names it was recognised."""

    layout: str
    reason: str
    texts: int


class Unused(StrEnum):
    """Why a file with text is not used."""

    UNKNOWN = "unknown"
    NO_AUDIO = "no_audio"
    GARBLED = "garbled"
    PACKED = "packed"
    OTHER_LIST = "other_list"
    LANGUAGE = "language"
    CHAPTERS = "chapters"
    EMPTY = "empty"
    TIER = "tier"


class TextNotUsed(WarningFact):
    """A file with text is not used, or a part of it."""

    why: Unused
    detail: str = ""


class Missing(StrEnum):
    """Why a written name leads to no recording."""

    NO_FILE = "no_file"
    OUTSIDE = "outside"
    SEVERAL = "several"
    NO_NAME = "no_name"


class ListedAudioMissing(WarningFact):
    """A recording that a text names cannot be used."""

    line: int
    name: str
    why: Missing


class LineFault(StrEnum):
    """What is wrong with a line."""

    CELLS = "cells"
    QUOTE = "quote"
    OBJECT = "object"
    TIMES = "times"
    NO_TEXT = "no_text"


class LineUnreadable(WarningFact):
    """A line of a text cannot be read."""

    line: int
    issue: LineFault
    detail: str = ""


class TextRepair(StrEnum):
    """What was changed in a text, or left out of it."""

    DECODED = "decoded"
    LOST = "lost"
    WINDOWS = "windows"
    NO_TIMES = "no_times"
    NOTES = "notes"
    SPEAKERS = "speakers"
    TURNS = "turns"
    SORTED = "sorted"
    EMPTY = "empty"
    REVERSED = "reversed"
    REPEATED = "repeated"
    ROLLING = "rolling"
    GARBLED = "garbled"
    ENDED = "ended"
    JOINED = "joined"
    HOURS = "hours"
    MOVED = "moved"
    LATE = "late"
    LONG = "long"
    SCRIPT = "script"


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


class TextMightExist(WarningFact):
    """A recording has no text while a text was not used, so a recogniser does not replace it unasked."""

    text: str


class MicrophoneChosen(Fact):
    """Of the recordings of a sentence by two microphones, one is used."""

    used: str


class ColumnsGuessed(WarningFact):
    """The columns of a list have other names than usual; they were told by their content."""

    name: str
    columns: str


class ColumnsNotUsableError(DataError):
    """The columns that were named do not fit."""

    written: str


class NotOnDisk(WarningFact):
    """An input must be unpacked or downloaded first, and no folder for it was given."""


class FolderFault(StrEnum):
    """What is wrong with an input."""

    MISSING = "missing"
    EMPTY = "empty"
    NAMED_AS_AUDIO = "named_as_audio"
    UNREADABLE = "unreadable"


class InputUnusable(WarningFact):
    """An input holds nothing that can be used."""

    fault: FolderFault
    detail: str = ""


class FileFault(StrEnum):
    """Why the file of a stranger cannot be read."""

    DAMAGED = "damaged"
    TOO_LARGE = "too_large"
    MANY_MEMBERS = "many_members"
    MANY_LINES = "many_lines"
    BOMB = "bomb"
    NO_TEXT = "no_text"
    NO_CUES = "no_cues"
    NO_SUBTITLES = "no_subtitles"
    NO_COLUMNS = "no_columns"
    NO_TABLE = "no_table"
    UNREADABLE = "unreadable"
    PROTECTED = "protected"


class ForeignFileError(DataError):
    """A document, archive, list or table cannot be read."""

    path: Path
    fault: FileFault
    detail: str = ""


class NoClipsError(DataError):
    """A preparation is finished, and no clip is in use."""

    project: str
    excluded: tuple[Fact, ...] = ()
