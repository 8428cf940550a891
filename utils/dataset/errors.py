"""Why recordings, lists, datasets and edits are refused."""

from pathlib import Path
from typing import Literal

from utils.core.errors import AmharicTtsError, AudioError, DataError, DownloadError, StorageError
from utils.dataset.facts import Bad
from utils.recognition.facts import RecognitionError


class FetchError(DownloadError):
    """A corpus or a recording cannot be downloaded."""

    name: str
    problem: Literal[
        "unknown", "no_files", "gated", "failed", "partial", "nested", "live", "no_package", "no_ffmpeg", "cookies"
    ]
    detail: str = ""


class TakeError(AudioError):
    """A take cannot become a clip."""

    problem: Literal["no_sentence", "no_take", "silent", "too_short", "too_long"]
    seconds: float = 0.0
    limit: float = 0.0


class NothingFoundError(DataError):
    """None of the inputs can be used."""

    problems: tuple[Bad, ...]


class NothingTranscribedError(RecognitionError):
    """No recording was prepared, because all of them wait for a recogniser that cannot be used."""

    cause: AmharicTtsError
    recommended: tuple[str, ...]


class DatasetError(DataError):
    """A dataset, one of its lists or what was computed of it cannot be used."""

    path: Path
    problem: Literal[
        "missing",
        "damaged",
        "changed",
        "format",
        "language",
        "outside",
        "history",
        "empty",
        "itself",
        "no_list",
        "no_rows",
        "apart",
        "overlap",
        "run_clips",
        "no_hash",
        "no_features",
    ]
    detail: str = ""


class DamagedFeaturesError(DataError):
    """A file of features does not hold what was written."""

    path: Path
    detail: str = ""


class StoreError(StorageError):
    """A dataset cannot be written."""

    path: Path
    problem: Literal["busy", "exists", "not_shared"]
    detail: str = ""


class EditError(DataError):
    """Clips cannot be edited like this."""

    problem: Literal[
        "no_clip",
        "empty_text",
        "no_text",
        "no_audio",
        "no_reason",
        "too_short",
        "too_long",
        "unchanged",
        "nothing_follows",
        "no_recording",
        "speaker_name",
        "no_speaker",
        "nothing_chosen",
        "not_changed",
        "made_by_edit",
        "nothing_to_undo",
        "nothing_to_redo",
        "lengths",
    ]
    what: str = ""
    limit: float = 0.0
