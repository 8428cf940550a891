"""The error tree: what happened, where, and how to fix it.

    AmharicTtsError          base of all; has an optional ``hint``
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

Errors of a single package are defined there, as subclasses of these. Any other exception that reaches the user is a bug
and is shown as an internal error.
"""

import re
from collections.abc import Sequence

EXIT_INTERRUPTED = 130  # exit code that shells use for a program stopped with Ctrl-C
SHORTAGES = {  # by what Python, torch and the loader of libraries say when the system refuses them something
    "MemoryError|allocate memory|map segment|out of memory|create a primitive": (
        "There is not enough memory. Close other programs, or raise the limit (ulimit -v)."
    ),
    "Too many open files": "Too many files are open. Raise the limit: ulimit -n 1024.",
    "start new thread": "No thread could be started. Close other programs, or raise the limit (ulimit -u).",
}


class AmharicTtsError(Exception):
    """Base of every error that the user can do something about: what happened and where, and how to fix it."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class ConfigError(AmharicTtsError):
    """A setting is unknown, malformed or out of bounds."""

    def __init__(self, message: str, *, hint: str = "", problems: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint)
        self.problems = problems  # one sentence for each bad setting, which begins with its name


class AudioError(AmharicTtsError):
    """An audio file cannot be read or written."""


class TextError(AmharicTtsError):
    """A text cannot be handled."""


class UnknownLanguageError(TextError, ValueError):
    """No language has this name; a ValueError too, so that pydantic reports it with the other bad settings."""


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


def shortage(error: BaseException) -> str:
    """Return a sentence about what the system is short of, if that is why an error was raised; otherwise nothing."""
    said = f"{type(error).__name__}: {error}"
    return next((sentence for signs, sentence in SHORTAGES.items() if re.search(signs, said)), "")


def explain(error: BaseException) -> str:
    """Return what to tell the user about any error whose traceback is in the log."""
    if isinstance(error, AmharicTtsError):
        return str(error)
    return shortage(error) or f"{type(error).__name__}: {error}. See the log for details, and please report it."
