"""Facts and errors of runs and projects."""

from pathlib import Path
from typing import Literal

# What runs have stored is read back as what it was only where its class is known.
import utils.core.monitor
import utils.dataset.errors
import utils.dataset.facts
import utils.dataset.readers.facts
import utils.evaluation.facts
import utils.media.facts
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
from utils.core.facts import Fact, Stop, WarningFact

# The status of a run; lost and unreadable are found when it is read, never written.
Status = Literal["queued", "starting", "running", "finished", "stopped", "failed", "lost", "unreadable"]


# A run with the same settings is there already, or it waits for one with other settings.
Outcome = Literal["started", "joined", "queued"]


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

    status: Literal["finished", "stopped", "failed"]
    stop: Stop = Stop.NO
    error: AmharicTtsError | None = None


class MoreWarnings(WarningFact):
    """More recordings had warnings than were printed."""

    count: int


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
    """A command that the page started ended with an error code."""

    code: int
    log: Path


class StudioError(AmharicTtsError):
    """Something that was asked of the studio is refused."""

    problem: Literal[
        "not_a_report",
        "no_licence_text",
        "number_of_models",
        "no_sentences",
        "many_sentences",
        "no_comparison",
        "no_adapter",
        "not_a_repository",
        "no_token",
        "upload_failed",
        "holds_the_model",
        "not_a_folder",
        "other_files",
        "no_reference",
        "no_sound",
        "no_clips_of_voice",
        "no_dataset",
        "no_readable_clip",
        "empty_file",
        "not_media",
        "too_large",
        "list_alone",
        "no_package",
        "no_ray",
        "not_remote",
        "separator_in_name",
        "no_media",
        "no_text",
        "many_lines",
        "no_project",
        "project_exists",
        "other_case",
        "not_in_trash",
        "not_movable",
        "not_reclaimable",
        "nothing_spoken",
        "no_take",
        "no_deleted_take",
        "damaged_take",
        "no_download",
        "built_in",
        "renamed_twice",
        "file_as_output",
        "no_training_clips",
        "no_recording",
        "one_voice",
        "bad_list",
        "no_vocabulary",
        "empty_text",
        "own_project",
        "two_flags",
        "needs_flag",
        "no_count",
        "no_model",
        "no_recordings",
        "not_settings",
        "not_a_number",
        "malformed",
        "no_preset",
        "unknown_format",
        "no_file",
        "not_uploaded",
        "no_new_sentence",
        "no_sentence",
        "no_clip",
        "nothing_entered",
        "no_word",
        "two_steps",
        "no_step",
        "one_step",
        "not_a_step",
        "not_loaded",
        "no_tunnel",
    ]
    name: str = ""
    detail: str = ""


class InputError(StudioError, DataError):
    """A file, a text or a choice cannot be used."""


class ProjectError(StudioError, StorageError):
    """A project or a folder cannot be used."""


class UsageError(StudioError, ConfigError):
    """A command or the page was used wrongly."""


class UploadError(StudioError, DownloadError):
    """A service of the internet could not be used."""


# What is checked of a dataset before it is trained on.
DatasetCheck = Literal[
    "training",
    "evaluation",
    "long_clips",
    "long_texts",
    "unknown_symbols",
    "known_symbols",
    "no_vocabulary",
    "invalid_lines",
    "language",
]


class DatasetFinding(Fact):
    """What a check found: how many, how much in hours or minutes, the longest in seconds, and which."""

    check: DatasetCheck
    verdict: str
    count: int
    amount: float = 0.0
    longest: float = 0.0
    names: tuple[str, ...] = ()
    detail: str = ""
