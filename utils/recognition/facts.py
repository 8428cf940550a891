"""What happens while sound is measured and recognised, as typed facts and errors."""

from typing import Literal

from utils.core.errors import AmharicTtsError
from utils.core.facts import WarningFact


class BandLimited(WarningFact):
    """A recording has no sound above a frequency, as on a telephone."""

    hertz: float


class NarrowBand(WarningFact):
    """The recordings of some speakers have a lower sample rate than the model."""

    kilohertz: float  # where they end
    speakers: int


class Reverberant(WarningFact):
    """Sounds of a recording decay slowly."""

    seconds: float  # by 60 dB


class NoiseFloor(WarningFact):
    """The quietest moments of a recording are not far below its speech."""

    decibels: float


class Hum(WarningFact):
    """There is sound below the voice, as from the mains; it is removed from the clips."""

    hertz: float
    decibels: float  # below the rest


class Offset(WarningFact):
    """The recorder added a constant, which is removed from the clips."""

    deviations: float


class RecogniserChanged(WarningFact):
    """A recogniser runs otherwise than was asked."""

    model: str
    change: Literal["no_gpu", "transformers", "fell_back", "restarted", "not_used"]
    detail: str = ""


class RecognitionError(AmharicTtsError):
    """A recogniser cannot be loaded, or it failed."""


class RecogniserError(RecognitionError):
    """A recogniser cannot be loaded, or it failed."""

    model: str
    problem: Literal[
        "missing",
        "unknown",
        "incomplete",
        "mel_bands",
        "number_format",
        "english_only",
        "no_adapter",
        "too_long",
        "failed",
        "failed_twice",
        "no_silero",
    ]
    detail: str = ""
