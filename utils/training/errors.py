"""What can go wrong while a model is trained, as typed errors."""

from pathlib import Path
from typing import Literal

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


class CheckpointRefusedError(DamagedError):
    """A checkpoint does not belong to the run."""

    folder: Path
    mismatch: Literal["settings", "model"]


class NoCheckpointError(DamagedError):
    """A run has no checkpoint to continue from."""

    run: str
    errors: tuple[AmharicTtsError, ...] = ()


class TrainingError(RunError):
    """A run cannot start or continue."""

    problem: Literal[
        "no_run",
        "one_process",
        "process_ended",
        "too_many_processes",
        "clips_changed",
        "settings_changed",
        "codec_changed",
        "base_missing",
    ]
    detail: str | int | Path = ""


class SettingRefusedError(SpeedupError):
    """A setting cannot act on this model, data or machine."""

    setting: str
    problem: Literal[
        "not_float32",
        "too_many_layers",
        "partly_fused",
        "not_switched",
        "other_activation",
        "below_one",
        "wrapped",
        "no_compiler",
        "all_frozen",
        "needs_gpu",
        "needs_bitsandbytes",
        "not_xtts",
        "no_gpt",
        "long_clip",
        "other_mode",
    ]
    detail: str | int | Path = ""
