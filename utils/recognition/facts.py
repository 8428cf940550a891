"""What happens while sound is measured and recognised, as typed facts and errors."""

from enum import StrEnum

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


class RecogniserChange(StrEnum):
    """What runs a recogniser instead."""

    NO_GPU = "no_gpu"
    TRANSFORMERS = "transformers"
    FELL_BACK = "fell_back"
    RESTARTED = "restarted"
    NOT_USED = "not_used"


class RecogniserChanged(WarningFact):
    """A recogniser runs otherwise than was asked."""

    model: str
    change: RecogniserChange
    detail: str = ""


class RecognitionError(AmharicTtsError):
    """A recogniser cannot be loaded, or it failed."""


class RecogniserProblem(StrEnum):
    """Why a recogniser cannot be used."""

    MISSING = "missing"
    UNKNOWN = "unknown"
    INCOMPLETE = "incomplete"
    MEL_BANDS = "mel_bands"
    NUMBER_FORMAT = "number_format"
    ENGLISH_ONLY = "english_only"
    NO_ADAPTER = "no_adapter"
    TOO_LONG = "too_long"
    FAILED = "failed"
    FAILED_TWICE = "failed_twice"
    NO_SILERO = "no_silero"


class RecogniserError(RecognitionError):
    """A recogniser cannot be loaded, or it failed."""

    model: str
    problem: RecogniserProblem
    detail: str = ""
