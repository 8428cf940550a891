"""What can be wrong with audio, as typed errors."""

from pathlib import Path
from typing import Literal

from utils.core.errors import AudioError
from utils.core.facts import WarningFact

# Why a file cannot be read, written or used.
AudioProblem = Literal[
    "missing",
    "folder",
    "pipe",
    "empty",
    "unreadable",
    "undecodable",
    "no_audio",
    "rate_changes",
    "out_of_range",
    "invalid_sample",
    "overflow",
    "several_channels",
    "extension",
    "not_streamable",
    "not_encodable",
    "too_short",
    "silent",
]


class AudioFileError(AudioError):
    """An audio file cannot be read, written or used."""

    path: Path
    problem: AudioProblem
    detail: str = ""


class AudioDamaged(WarningFact):
    """Parts of a file cannot be decoded: they are left out, or silent."""

    path: Path
    packets: int


class AudioGapsFilled(WarningFact):
    """Silence stands for what is missing within a file."""

    path: Path
    seconds: float


class AudioCutOff(WarningFact):
    """The end of a file is missing: it holds less than it says."""

    path: Path
    seconds: float
    stated: float


class SpeedError(AudioError):
    """A speed that cannot be reached by stretching."""

    speed: float
