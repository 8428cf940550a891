"""What can be wrong with audio, as typed errors."""

from enum import StrEnum
from pathlib import Path

from utils.core.errors import AudioError
from utils.core.facts import WarningFact


class AudioProblem(StrEnum):
    """Why a file cannot be read, written or used."""

    MISSING = "missing"
    FOLDER = "folder"
    PIPE = "pipe"
    EMPTY = "empty"
    UNREADABLE = "unreadable"
    UNDECODABLE = "undecodable"
    NO_AUDIO = "no_audio"
    RATE_CHANGES = "rate_changes"
    OUT_OF_RANGE = "out_of_range"
    INVALID_SAMPLE = "invalid_sample"
    OVERFLOW = "overflow"
    SEVERAL_CHANNELS = "several_channels"
    EXTENSION = "extension"
    NOT_STREAMABLE = "not_streamable"
    NOT_ENCODABLE = "not_encodable"
    TOO_SHORT = "too_short"
    SILENT = "silent"


class AudioFileError(AudioError):
    """An audio file cannot be read, written or used."""

    path: Path
    problem: AudioProblem
    detail: str = ""


class AudioDamaged(WarningFact):
    """Parts of a file cannot be decoded: they are left out, or silent."""

    path: Path
    packets: int = 0
    silence: float = 0.0  # seconds


class SpeedError(AudioError):
    """A speed that cannot be reached by stretching."""

    speed: float
