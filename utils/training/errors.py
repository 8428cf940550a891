"""What can go wrong while a model is trained, as typed errors."""

from enum import StrEnum
from pathlib import Path

from utils.core.errors import AmharicTtsError, DamagedError, DataError, RunError, SpeedupError
from utils.core.facts import WarningFact
from utils.training.facts import Aside


class NotEnoughMemoryError(AmharicTtsError):
    """A run does not fit into the memory of its device."""


class PlanDoesNotFitError(NotEnoughMemoryError):
    """By the estimate, a run does not fit, whatever its batch size; sizes in bytes."""

    needed: int
    available: int
    remedies: tuple[str, ...] = ()  # settings, each with the memory that would then be needed


class ClipsDoNotFitError(NotEnoughMemoryError):
    """Memory ran out with so many clips."""

    clips: int


class StateDoesNotFitError(NotEnoughMemoryError):
    """Memory ran out for what a run holds all the time: weights, gradients, and the state of its optimizer."""


class NoUsableClipsError(DataError):
    """All clips of a list are excluded."""

    split: str
    excluded: tuple[Aside, ...] = ()


class NotFiniteError(RunError):
    """A run rolled back several times, and its numbers are still not finite."""

    rollbacks: int
    updates: int
    last: WarningFact


class Mismatch(StrEnum):
    """Why a run cannot continue from a checkpoint."""

    SETTINGS = "settings"
    MODEL = "model"


class CheckpointRefusedError(DamagedError):
    """A checkpoint does not belong to the run."""

    folder: Path
    mismatch: Mismatch


class NoCheckpointError(DamagedError):
    """A run has no checkpoint to continue from."""

    run: str
    errors: tuple[AmharicTtsError, ...] = ()


class RunProblem(StrEnum):
    """Why a run cannot start or continue."""

    NO_RUN = "no_run"
    ONE_PROCESS = "one_process"
    PROCESS_ENDED = "process_ended"
    TOO_MANY_PROCESSES = "too_many_processes"
    CLIPS_CHANGED = "clips_changed"
    SETTINGS_CHANGED = "settings_changed"
    CODEC_CHANGED = "codec_changed"
    BASE_MISSING = "base_missing"


class TrainingError(RunError):
    """A run cannot start or continue."""

    problem: RunProblem
    detail: str | int | Path = ""


class Refusal(StrEnum):
    """Why a setting cannot act."""

    NOT_FLOAT32 = "not_float32"
    TOO_MANY_LAYERS = "too_many_layers"
    PARTLY_FUSED = "partly_fused"
    NOT_SWITCHED = "not_switched"
    OTHER_ACTIVATION = "other_activation"
    BELOW_ONE = "below_one"
    WRAPPED = "wrapped"
    NO_COMPILER = "no_compiler"
    ALL_FROZEN = "all_frozen"
    NEEDS_GPU = "needs_gpu"
    NEEDS_BITSANDBYTES = "needs_bitsandbytes"
    NOT_XTTS = "not_xtts"
    NO_GPT = "no_gpt"
    LONG_CLIP = "long_clip"
    OTHER_MODE = "other_mode"


class SettingRefusedError(SpeedupError):
    """A setting cannot act on this model, data or machine."""

    setting: str
    problem: Refusal
    detail: str | int | Path = ""
