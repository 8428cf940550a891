"""What can be wrong with a model, its vocabulary, its checkpoints and its text, as typed errors."""

from enum import StrEnum
from pathlib import Path

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


class ModelProblem(StrEnum):
    """Why the files of a model cannot be used."""

    NOT_FOUND = "not_found"
    SIMILAR = "similar"
    NOT_A_FOLDER = "not_a_folder"
    EMPTY = "empty"
    NOTHING_FINISHED = "nothing_finished"
    UNTRAINED = "untrained"
    NO_CHECKPOINT = "no_checkpoint"
    MISSING = "missing"
    LACKS = "lacks"
    UNREADABLE = "unreadable"
    NO_MEMORY = "no_memory"
    CONTAINS_CODE = "contains_code"
    NO_WEIGHTS = "no_weights"
    NO_VOCODER = "no_vocoder"
    MISMATCH = "mismatch"
    OTHER_MODEL = "other_model"
    VERSION_1 = "version_1"
    TOO_LARGE_FOR_HALF = "too_large_for_half"
    NOT_PUBLISHED = "not_published"


class ModelFileError(AmharicTtsError):
    """A model file is missing or damaged, or is not what its name says."""

    path: Path
    problem: ModelProblem
    detail: str = ""


class TensorFileError(DamagedError):
    """A file of tensors cannot be read."""

    path: Path
    reason: str


class CheckpointProblem(StrEnum):
    """Why a checkpoint cannot be used."""

    NOT_FOUND = "not_found"
    OTHER_VOCABULARY = "other_vocabulary"
    BASE_UNKNOWN = "base_unknown"
    BASE_CHANGED = "base_changed"
    NO_WEIGHTS = "no_weights"
    ADAPTER = "adapter"


class CheckpointError(RunError):
    """A checkpoint is missing or damaged, or does not fit what belongs to it."""

    folder: Path
    problem: CheckpointProblem
    detail: str = ""


class VocabularyProblem(StrEnum):
    """Why a vocabulary cannot be used."""

    UNREADABLE = "unreadable"
    NOT_BPE = "not_bpe"
    LACKS = "lacks"
    OTHER_MODEL = "other_model"
    OTHER_SIZE = "other_size"
    NO_LANGUAGE = "no_language"
    NO_SYMBOL = "no_symbol"
    NO_LATIN = "no_latin"


class VocabularyFileError(VocabularyError):
    """A vocabulary is damaged, or does not fit the text or the model."""

    source: str
    problem: VocabularyProblem
    detail: str = ""


class FrontEndVersionError(RunError):
    """A run was trained with an older version of the text front end; going on would mix two readings of one text."""

    pack: str
    trained: int
    current: int


class FrontEndProblem(StrEnum):
    """Why a text cannot be prepared."""

    PRONUNCIATION = "pronunciation"
    PACKAGE = "package"
    CLEANER = "cleaner"


class FrontEndError(TextError):
    """A text cannot be prepared for the model."""

    language: str
    problem: FrontEndProblem
    detail: str


class PronunciationProblem(StrEnum):
    """Why a pronunciation cannot be used."""

    UNREADABLE = "unreadable"
    MALFORMED = "malformed"
    EMPTY = "empty"
    NOT_SPOKEN = "not_spoken"
    TOO_MANY = "too_many"


class PronunciationListError(TextError):
    """A pronunciation is not one, or their file cannot be read."""

    written: str  # the word, or the line of the file
    problem: PronunciationProblem
    detail: str = ""


class AdapterProblem(StrEnum):
    """Why a switch cannot act on this model."""

    EXISTS = "exists"
    NO_LAYER = "no_layer"
    MISMATCH = "mismatch"
    SCALE = "scale"
    NO_ATTENTION = "no_attention"
    WRAPPED = "wrapped"


class ModelSwitchError(SpeedupError):
    """An adapter or a faster attention does not fit this model."""

    problem: AdapterProblem
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


class PrecisionWhy(StrEnum):
    """Why a precision was chosen."""

    OFF = "off"
    UNTESTED = "untested"
    CPU_BF16 = "cpu_bf16"
    CPU_LACKS_BF16 = "cpu_lacks_bf16"
    GPU_BF16 = "gpu_bf16"
    GPU_FP16 = "gpu_fp16"
    GPU_LACKS_HALF = "gpu_lacks_half"
    SMALL_MODEL = "small_model"
    REQUESTED = "requested"
    FASTER = "faster"
    NOTHING_FASTER = "nothing_faster"


class PrecisionReason(Fact):
    """Why a precision was chosen; the detail is what was found of the device, or measured."""

    why: PrecisionWhy
    detail: str = ""
    date: str = ""
