"""What can be wrong with a model, its vocabulary, its checkpoints and its text, as typed errors."""

from pathlib import Path
from typing import Literal

from utils.core.errors import (
    AmharicTtsError,
    ConfigError,
    DamagedError,
    DownloadError,
    RunError,
    SpeedupError,
    TextError,
    VocabularyError,
)
from utils.core.facts import Fact, WarningFact


class ModelFileError(AmharicTtsError):
    """A model file is missing or damaged, or is not what its name says."""

    path: Path
    problem: Literal[
        "not_found",
        "similar",
        "not_a_folder",
        "empty",
        "nothing_finished",
        "untrained",
        "no_checkpoint",
        "missing",
        "lacks",
        "unreadable",
        "no_memory",
        "contains_code",
        "no_weights",
        "no_vocoder",
        "mismatch",
        "other_model",
        "version_1",
        "too_large_for_half",
        "not_published",
    ]
    detail: str = ""


class TensorFileError(DamagedError):
    """A file of tensors cannot be read."""

    path: Path
    reason: str


class CheckpointError(RunError):
    """A checkpoint is missing or damaged, or does not fit what belongs to it."""

    folder: Path
    problem: Literal["not_found", "other_vocabulary", "base_unknown", "base_changed", "no_weights", "adapter"]
    detail: str = ""


class VocabularyFileError(VocabularyError):
    """A vocabulary is damaged, or does not fit the text or the model."""

    source: str
    problem: Literal[
        "unreadable", "not_bpe", "lacks", "other_model", "other_size", "no_language", "no_symbol", "no_latin"
    ]
    detail: str = ""


class FrontEndVersionError(RunError):
    """A run was trained with an older version of the text front end; going on would mix two readings of one text."""

    pack: str
    trained: int
    current: int


class FrontEndError(TextError):
    """A text cannot be prepared for the model."""

    language: str
    problem: Literal["pronunciation", "package", "cleaner"]
    detail: str


class PronunciationListError(TextError):
    """A pronunciation is not one, or their file cannot be read."""

    written: str  # the word, or the line of the file
    problem: Literal["unreadable", "malformed", "empty", "not_spoken", "too_many"]
    detail: str = ""


class ModelSwitchError(SpeedupError):
    """An adapter or a faster attention does not fit this model."""

    problem: Literal["exists", "no_layer", "mismatch", "scale", "no_attention", "wrapped"]
    detail: str = ""


class FrontEndChanged(WarningFact):
    """A model was trained with another version of the text front end, so words may differ."""

    front_end: str
    trained: str
    now: str


class LicenceError(AmharicTtsError):
    """The licence of the published model has not been accepted."""

    licence: str
    variable: str


class ConsentFixedError(AmharicTtsError):
    """The consent to the licence comes from the environment, so it cannot be withdrawn here."""

    variable: str


class UnreachableError(DownloadError):
    """The hub does not answer, or answers with an error."""

    name: str
    reason: str


class WrongHashError(DownloadError):
    """A file of the hub does not have its published hash."""

    name: str


class GpuMissingError(ConfigError):
    """A GPU is asked for, and there is none."""

    device: str


class BaseModelReady(Fact):
    """A base model is on disk."""

    version: str
    folder: Path


class PrecisionReason(Fact):
    """Why a precision was chosen; the detail is what was found of the device, or measured."""

    why: Literal[
        "off",
        "untested",
        "cpu_bf16",
        "cpu_lacks_bf16",
        "gpu_bf16",
        "gpu_fp16",
        "gpu_lacks_half",
        "failed",
        "small_model",
        "requested",
        "faster",
        "nothing_faster",
    ]
    detail: str = ""
    date: str = ""


class KernelsUntested(WarningFact):
    """Attention kernels are in use that no passed test of this device has covered."""

    kernels: tuple[str, ...]
    command: str  # that tests them
