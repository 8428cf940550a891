"""The error tree: what happened, where, and how to fix it.

    AmharicTtsError          base of all
    ├── ConfigError          a setting is unknown, malformed or out of bounds
    ├── AudioError           an audio file cannot be read or written
    ├── TextError            a text cannot be handled
    │   ├── UnknownLanguageError   no language has this name
    │   └── VocabularyError  a vocabulary does not fit the text or the model
    ├── DataError            a dataset or its manifest is damaged
    ├── DownloadError        a URL cannot or must not be downloaded
    ├── SpeedupError         an optimization cannot act on this model or machine
    ├── RunError             a run cannot be started, found or stopped
    │   └── RunBusyError     the run or its project is busy
    └── StorageError         the disk is full, or a folder cannot be written
        └── DamagedError     a file or folder does not contain what was written to it

An error is a typed fact that is raised: a subclass of one of these with annotated fields. Its sentence and its cure
stand in ``utils/wording`` under the name of the class, in every language::

    class ClipMissingError(DataError):
        clip: str
        project: str

    raise ClipMissingError(clip.id, project)

Errors of a package are defined in its ``facts`` module. Any other exception that reaches the user is a bug and is
shown as an internal error.
"""

import re
from pathlib import Path
from typing import Literal, dataclass_transform

from utils.core import wording
from utils.core.fields import Fields, field_values, set_fields

EXIT_INTERRUPTED = 130  # exit code that shells use for a program stopped with Ctrl-C
FOLDERS = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][^\s\\/:,;]+)+[\\/](?=[^\s\\/])")  # in a sentence; nobody else's business


Resource = Literal["memory", "files", "threads", "disk"]
# By what Python, torch and the loader of libraries say when the system refuses them something.
SHORTAGES: dict[str, Resource] = {
    "MemoryError|allocate memory|map segment|out of memory|create a primitive": "memory",
    "Too many open files": "files",
    "start new thread": "threads",
    "No space left on device|Disk quota exceeded": "disk",
}


@dataclass_transform()
class AmharicTtsError(Fields, Exception):
    """Base of every error that the user can do something about: what happened and where, and how to fix it."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        ERRORS[cls.__name__] = cls

    def __init__(self, *values: object, **named: object) -> None:
        set_fields(self, values, named)
        super().__init__(*field_values(self).values())  # with which a copy in another process is made

    @property
    def message(self) -> str:
        """What happened and where, in English."""
        with wording.speaking("en"):
            return wording.describe(self)

    @property
    def hint(self) -> str:
        """How to fix it, in English."""
        with wording.speaking("en"):
            return wording.cure(self)

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.args == self.args

    def __hash__(self) -> int:
        return hash((type(self), str(self.args)))


ERRORS: dict[str, type[AmharicTtsError]] = {}  # by name


class ConfigError(AmharicTtsError):
    """A setting is unknown, malformed or out of bounds."""


class IntegrationMissingError(ConfigError):
    """The folder of the integrations was deleted."""

    name: str


class AudioError(AmharicTtsError):
    """An audio file cannot be read or written."""


class TextError(AmharicTtsError):
    """A text cannot be handled."""


class UnknownLanguageError(TextError, ValueError):
    """No language has this name; a ValueError too, so that pydantic reports it with the other bad settings."""

    name: str
    suggestions: tuple[str, ...] = ("Amharic", "am")  # similar names, or examples


class VocabularyError(TextError):
    """A vocabulary does not fit the text or the model."""


class DataError(AmharicTtsError):
    """A dataset or its manifest is damaged."""


class DownloadError(AmharicTtsError):
    """A URL cannot or must not be downloaded."""


class SpeedupError(AmharicTtsError):
    """An optimization cannot act on this model or machine."""


class RunError(AmharicTtsError):
    """A run cannot be started, found or stopped."""


class RunBusyError(RunError):
    """The run or its project is busy."""


class StorageError(AmharicTtsError):
    """The disk is full, or a folder cannot be written."""


class DamagedError(StorageError):
    """A file or folder does not contain what was written to it."""


class PathMissingError(DataError):
    """A path that the user named does not exist."""

    path: Path | str


class UnreadableError(StorageError):
    """The system refuses to read a file or folder."""

    path: Path
    reason: str


class UnwritableError(StorageError):
    """The system refuses to write a file or folder."""

    path: Path
    reason: str


class AccessDeniedError(UnwritableError):
    """A file or folder may not be written."""


class DiskFullError(UnwritableError):
    """A file did not fit on the disk."""


class NoSpaceError(StorageError):
    """Something will not fit on the disk, so it was not started; the sizes are in bytes."""

    path: Path
    needed: int
    free: int


class UndeletableError(StorageError):
    """A folder cannot be deleted."""

    path: Path
    reason: str


class NameNotAllowedError(StorageError):
    """A name is not safe as a folder on every system."""

    name: str


class ChangedMeanwhileError(DataError):
    """A text was typed on another one than is stored by now."""

    what: str


class OutsideFolderError(StorageError):
    """A path leaves the folder that it must stay in."""

    path: Path
    folder: Path


class FileDamagedError(DamagedError):
    """A file does not contain what was written to it."""

    path: Path
    damage: Literal["unreadable", "format", "changed", "missing", "size"] = "changed"


class ProcessNotStartedError(RunError):
    """The system refuses to start a process."""

    reason: str


class NoAnswerError(RunError):
    """A child process did not answer in time."""

    seconds: float


class ChildError(RunError):
    """A child process ended with an error."""

    reason: str


class UrlNotUsableError(DownloadError):
    """A URL is malformed or not of the web."""

    url: str


class UrlWithPasswordError(DownloadError):
    """A URL contains a password."""

    host: str


class HostNotFoundError(DownloadError):
    """No address belongs to the name of a host."""

    host: str
    reason: str


class PrivateAddressError(DownloadError):
    """A URL leads to this computer or its own network."""

    url: str


class ShortageError(AmharicTtsError):
    """The system is short of something."""

    resource: Resource


class RecordedError(AmharicTtsError):
    """An error that another version wrote down, or one that is damaged."""

    name: str
    values: str


class InternalError(AmharicTtsError):
    """An error that no user can do something about: a bug."""

    reason: str


def shortage(error: BaseException) -> str:
    """Return a sentence about what the system is short of, if that is why an error was raised; otherwise nothing."""
    typed = as_typed(error)
    return str(typed) if isinstance(typed, ShortageError) else ""


def as_typed(error: BaseException) -> AmharicTtsError:
    """Return any error as one that can be worded; the traceback of an internal one is in the log."""
    if isinstance(error, AmharicTtsError):
        return error
    said = f"{type(error).__name__}: {error}"
    short = next((resource for signs, resource in SHORTAGES.items() if re.search(signs, said)), None)
    return ShortageError(short) if short else InternalError(said)


def first_line(error: BaseException) -> str:
    """Return the first line of an error of a library without its period, or the kind of one that says nothing."""
    return (str(error).strip() or type(error).__name__).partition("\n")[0].rstrip(".")


def explain(error: BaseException) -> str:
    """Return what to tell the user about any error whose traceback is in the log."""
    return str(as_typed(error))


def for_others(error: AmharicTtsError) -> AmharicTtsError:
    """Return an error as it may leave this machine: files by their names, without folders, also within a detail."""
    values = field_values(error)
    paths = [Path(value) for value in values.values() if isinstance(value, (str, Path)) and Path(value).is_absolute()]

    def named(value: object) -> object:
        if not isinstance(value, (str, Path)):
            return value
        said = str(value)
        for path in paths:
            said = said.replace(str(path), path.name)
        return type(value)(FOLDERS.sub("", said))

    return type(error)(**{name: named(value) for name, value in values.items()})
