"""Why recordings, lists, datasets and edits are refused."""

from enum import StrEnum
from pathlib import Path

from utils.core.errors import AmharicTtsError, AudioError, DataError, DownloadError, StorageError
from utils.dataset.facts import Bad
from utils.recognition.facts import RecognitionError


class FetchProblem(StrEnum):
    """Why a corpus or a recording cannot be downloaded."""

    UNKNOWN = "unknown"
    NO_FILES = "no_files"
    GATED = "gated"
    FAILED = "failed"
    PARTIAL = "partial"
    NESTED = "nested"
    LIVE = "live"
    NO_PACKAGE = "no_package"
    NO_FFMPEG = "no_ffmpeg"
    COOKIES = "cookies"


class FetchError(DownloadError):
    """A corpus or a recording cannot be downloaded."""

    name: str
    problem: FetchProblem
    detail: str = ""


class TakeProblem(StrEnum):
    """Why a take is refused."""

    NO_SENTENCE = "no_sentence"
    NO_TAKE = "no_take"
    SILENT = "silent"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"


class TakeError(AudioError):
    """A take cannot become a clip."""

    problem: TakeProblem
    seconds: float = 0.0
    limit: float = 0.0


class NothingFoundError(DataError):
    """None of the inputs can be used."""

    problems: tuple[Bad, ...]


class NothingTranscribedError(RecognitionError):
    """No recording was prepared, because all of them wait for a recogniser that cannot be used."""

    cause: AmharicTtsError
    recommended: tuple[str, ...]


class DatasetProblem(StrEnum):
    """Why a dataset, one of its lists or what was computed of it cannot be used."""

    MISSING = "missing"
    DAMAGED = "damaged"
    CHANGED = "changed"
    FORMAT = "format"
    LANGUAGE = "language"
    OUTSIDE = "outside"
    HISTORY = "history"
    EMPTY = "empty"
    ITSELF = "itself"
    NO_LIST = "no_list"
    NO_ROWS = "no_rows"
    APART = "apart"
    OVERLAP = "overlap"
    RUN_CLIPS = "run_clips"
    NO_HASH = "no_hash"
    NO_FEATURES = "no_features"


class DatasetError(DataError):
    """A dataset, one of its lists or what was computed of it cannot be used."""

    path: Path
    problem: DatasetProblem
    detail: str = ""


class DamagedFeaturesError(DataError):
    """A file of features does not hold what was written."""

    path: Path
    detail: str = ""


class StoreProblem(StrEnum):
    """Why a dataset cannot be written."""

    BUSY = "busy"
    EXISTS = "exists"


class StoreError(StorageError):
    """A dataset cannot be written."""

    path: Path
    problem: StoreProblem
    detail: str = ""


class EditProblem(StrEnum):
    """Why clips cannot be edited like this."""

    NO_CLIP = "no_clip"
    EMPTY_TEXT = "empty_text"
    NO_TEXT = "no_text"
    NO_AUDIO = "no_audio"
    NO_REASON = "no_reason"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    UNCHANGED = "unchanged"
    NOTHING_FOLLOWS = "nothing_follows"
    NO_RECORDING = "no_recording"
    SPEAKER_NAME = "speaker_name"
    NO_SPEAKER = "no_speaker"
    NOT_CHANGED = "not_changed"
    MADE_BY_EDIT = "made_by_edit"
    NOTHING_TO_UNDO = "nothing_to_undo"
    NOTHING_TO_REDO = "nothing_to_redo"
    LENGTHS = "lengths"


class EditError(DataError):
    """Clips cannot be edited like this."""

    problem: EditProblem
    what: str = ""
    limit: float = 0.0
