"""Every error that a person can meet: what happened, where, and how to mend it.

    AmharicTtsError          base of all; carries an optional ``hint``
    ├── ConfigError          a setting is unknown, malformed or out of bounds
    ├── AudioError           a recording cannot be read or written
    ├── TextError            a text cannot be handled
    │   ├── UnknownLanguageError   no language goes by this name (in languages.py)
    │   └── VocabularyError  a vocabulary does not fit the text or the model
    ├── DataError            a dataset or its manifest is broken
    ├── RecognitionError     a recogniser cannot be had or gave up (in dataset/transcription.py)
    ├── DownloadError        an address cannot or may not be fetched (in dataset/public_addresses.py)
    │   └── UnreachableError the hub cannot be reached (in xtts/hub.py)
    ├── ModelFileError       a file of a model is missing or damaged (in xtts/codes.py)
    ├── LicenceError         nobody has agreed to the licence of the model yet (in xtts/licence.py)
    ├── SpeedupError         a switch cannot act on this model or machine (in speedups/change.py)
    ├── NoRoomError          memory does not suffice (in training/memory.py)
    ├── RunError             a run cannot be started, found or stopped
    │   └── RunBusyError     the run or its project is at work already
    └── StorageError         the disk is full, or a folder cannot be written

Anything else that reaches the user is a fault of ours, and is shown as such.
"""

from collections.abc import Sequence


class AmharicTtsError(Exception):
    """Base of every error with a cure.

    Args:
        message: What happened and where.
        hint: How to mend it, as a sentence; empty when nothing sensible can be said.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".rstrip()


class ConfigError(AmharicTtsError):
    """A setting is unknown, malformed or out of bounds.

    Args:
        message: What happened and where.
        hint: How to mend it.
        faults: Each by itself, its setting first, where several settings were looked at.
    """

    def __init__(self, message: str, *, hint: str = "", faults: Sequence[str] = ()) -> None:
        super().__init__(message, hint=hint)
        self.faults = faults


class AudioError(AmharicTtsError):
    """A recording cannot be read or written."""


class TextError(AmharicTtsError):
    """A text or a language cannot be handled."""


class VocabularyError(TextError):
    """A vocabulary does not fit the text or the model."""


class DataError(AmharicTtsError):
    """A dataset or its manifest is broken."""


class RunError(AmharicTtsError):
    """A run cannot be started, found or stopped."""


class RunBusyError(RunError):
    """The run or its project is at work already."""


class StorageError(AmharicTtsError):
    """The disk is full, or a folder cannot be written."""
