"""Facts and errors of runs and projects."""

from enum import StrEnum
from pathlib import Path

from utils.core.errors import AmharicTtsError, RunBusyError, RunError
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
