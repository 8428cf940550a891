"""Facts and errors of runs and projects."""

from enum import StrEnum
from pathlib import Path

# What runs have stored is read back as what it was only where its class is known.
import utils.dataset.errors
import utils.dataset.facts
import utils.recognition.facts
import utils.speech.facts
import utils.training.errors
import utils.training.facts
import utils.xtts.facts  # noqa: F401
from utils.core.errors import (
    AmharicTtsError,
    ConfigError,
    DataError,
    DownloadError,
    RunBusyError,
    RunError,
    StorageError,
)
from utils.core.facts import Fact, Stop


class Status(StrEnum):
    """The status of a run; LOST and UNREADABLE are found when it is read, never written."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    FINISHED = "finished"
    STOPPED = "stopped"
    FAILED = "failed"
    LOST = "lost"
    UNREADABLE = "unreadable"


class Outcome(StrEnum):
    """What became of the request to start a run."""

    STARTED = "started"
    JOINED = "joined"  # one with the same settings is there already
    QUEUED = "queued"  # it waits for one with other settings


class RunStarted(Fact):
    """A run was started, joined or queued."""

    name: str
    folder: Path
    outcome: Outcome
    ahead: str = ""  # the run that it waits for


class Started(Fact):
    """The process of a run works."""

    pid: int


class Ended(Fact):
    """A run has ended; stopped, or failed with an error."""

    status: Status
    stop: Stop = Stop.NO
    error: AmharicTtsError | None = None


class Failed(Fact):
    """One of several processes of a run failed; the process that writes the state reads the cause."""

    error: AmharicTtsError


class RunActiveError(RunBusyError):
    """A run is active, so that it or its project cannot be changed."""

    run: str
    project: str


class RunNotFoundError(RunError):
    """A project has no run of this name."""

    name: str
    project: Path
    names: tuple[str, ...]


class RunUnreadableError(RunError):
    """The state of a run is damaged."""

    path: Path
    reason: str


class RunLostError(RunError):
    """The process of a run has ended without a word."""

    log: Path


class RunNotStartedError(RunError):
    """The process of a run has ended before its work began."""

    name: str
    log: Path


class RunElsewhereError(RunError):
    """A run is active on another machine."""

    name: str
    machine: str


class RunLeftoversError(RunBusyError):
    """A run was deleted, except for files that are in use."""

    name: str
    folder: Path


class RunNameMissingError(RunError):
    """A command needs the name of a run."""

    action: str


class CommandFailedError(RunError):
    """A command of a task ended with an error code."""

    code: int
    log: Path


class Problem(StrEnum):
    """Why something that was asked of the studio is refused."""

    NOT_A_REPORT = "not_a_report"
    NO_LICENCE_TEXT = "no_licence_text"
    NUMBER_OF_MODELS = "number_of_models"
    NO_SENTENCES = "no_sentences"
    MANY_SENTENCES = "many_sentences"
    NO_COMPARISON = "no_comparison"
    NO_ADAPTER = "no_adapter"
    NOT_A_REPOSITORY = "not_a_repository"
    NO_TOKEN = "no_token"  # noqa: S105
    UPLOAD_FAILED = "upload_failed"
    HOLDS_THE_MODEL = "holds_the_model"
    NOT_A_FOLDER = "not_a_folder"
    OTHER_FILES = "other_files"
    NO_REFERENCE = "no_reference"
    NO_SOUND = "no_sound"
    NO_CLIPS_OF_VOICE = "no_clips_of_voice"
    NO_DATASET = "no_dataset"
    NO_READABLE_CLIP = "no_readable_clip"
    EMPTY_FILE = "empty_file"
    NOT_MEDIA = "not_media"
    TOO_LARGE = "too_large"
    LIST_ALONE = "list_alone"
    NO_PACKAGE = "no_package"
    SEPARATOR_IN_NAME = "separator_in_name"
    NO_MEDIA = "no_media"
    NO_TEXT = "no_text"
    MANY_LINES = "many_lines"
    NO_PROJECT = "no_project"
    PROJECT_EXISTS = "project_exists"
    OTHER_CASE = "other_case"
    NOT_IN_TRASH = "not_in_trash"
    NOT_MOVABLE = "not_movable"
    NOT_RECLAIMABLE = "not_reclaimable"
    NOTHING_SPOKEN = "nothing_spoken"
    NO_TAKE = "no_take"
    NO_DELETED_TAKE = "no_deleted_take"
    DAMAGED_TAKE = "damaged_take"
    NO_DOWNLOAD = "no_download"
    BUILT_IN = "built_in"
    RENAMED_TWICE = "renamed_twice"
    NO_TRAINING_CLIPS = "no_training_clips"
    NO_RECORDING = "no_recording"
    ONE_VOICE = "one_voice"
    BAD_LIST = "bad_list"
    NO_VOCABULARY = "no_vocabulary"
    EMPTY_TEXT = "empty_text"
    OWN_PROJECT = "own_project"
    TWO_FLAGS = "two_flags"
    NO_COUNT = "no_count"
    NO_MODEL = "no_model"
    NO_RECORDINGS = "no_recordings"
    NOT_SETTINGS = "not_settings"
    NOT_A_NUMBER = "not_a_number"
    MALFORMED = "malformed"
    NO_PRESET = "no_preset"
    UNKNOWN_FORMAT = "unknown_format"
    NO_FILE = "no_file"
    NOT_UPLOADED = "not_uploaded"
    NO_NEW_SENTENCE = "no_new_sentence"
    NO_SENTENCE = "no_sentence"
    NO_CLIP = "no_clip"
    NOTHING_ENTERED = "nothing_entered"
    NO_WORD = "no_word"
    TWO_STEPS = "two_steps"
    NO_STEP = "no_step"
    ONE_STEP = "one_step"
    NOT_A_STEP = "not_a_step"
    NOT_LOADED = "not_loaded"
    NO_TUNNEL = "no_tunnel"


class InputError(DataError):
    """A file, a text or a choice cannot be used."""

    problem: Problem
    name: str = ""
    detail: str = ""


class ProjectError(StorageError):
    """A project or a folder cannot be used."""

    problem: Problem
    name: str = ""
    detail: str = ""


class UsageError(ConfigError):
    """A command or the page was used wrongly."""

    problem: Problem
    name: str = ""
    detail: str = ""


class UploadError(DownloadError):
    """A service of the internet could not be used."""

    problem: Problem
    name: str = ""
    detail: str = ""


class DatasetCheck(StrEnum):
    """What is checked of a dataset before it is trained on."""

    TRAINING = "training"
    EVALUATION = "evaluation"
    LONG_CLIPS = "long_clips"
    LONG_TEXTS = "long_texts"
    UNKNOWN_SYMBOLS = "unknown_symbols"
    KNOWN_SYMBOLS = "known_symbols"
    NO_VOCABULARY = "no_vocabulary"
    INVALID_LINES = "invalid_lines"
    LANGUAGE = "language"


class DatasetFinding(Fact):
    """What a check found: how many, how much in hours or minutes, the longest in seconds, and which."""

    check: DatasetCheck
    verdict: str
    count: int
    amount: float = 0.0
    longest: float = 0.0
    names: tuple[str, ...] = ()
    detail: str = ""
