"""Runs: child processes that outlive the page. Start, find, watch, stop, resume and delete them.

A run is a folder. Its state is read from the folder and corrected by whether its process is alive. Nothing is kept in
memory, so the page can be closed, restarted or opened twice.
"""

import contextlib
import dataclasses
import re
import shutil
import threading
import time
import weakref
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Protocol

from pydantic import Field, TypeAdapter, ValidationError

from utils.config import Config
from utils.core.errors import RunBusyError, RunError, StorageError
from utils.core.paths import Project, resolve_inside, validate_name
from utils.core.processes import end_tree, is_alive, machine, start_detached
from utils.core.storage import file_lock, make_folder, make_unique_folder, read_text, storage_errors, write_atomically

START_SECONDS = 60.0  # a cold Python on a busy disk has taken 20
SILENT_SECONDS = 60.0  # a heartbeat is written every 5
POLL_SECONDS = 0.05
MAX_MESSAGE = 1000  # characters that fit, in any script, into the single block that every file has
NAME = re.compile(r"[^-]+-[^-]+-(?P<verb>.+?)(-\d+)?")  # such as 20260101-120000-prepare-2

Moment = Annotated[float, Field(ge=0, le=4e9)]  # seconds since 1970


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


ACTIVE = frozenset({Status.STARTING, Status.RUNNING})


@dataclass(frozen=True)
class State:
    """The content of state.json, validated when it is read."""

    verb: Annotated[str, Field(pattern=r"^[a-z][a-z-]*$")]
    status: Status
    created: Moment
    pid: int = 0
    identity: str = ""
    machine: str = ""
    heartbeat: Moment = 0.0
    message: str = ""


STATE_FILE = TypeAdapter(State)


@dataclass(frozen=True)
class Run:
    """A run on disk: the folder with everything about it."""

    folder: Path

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def verb(self) -> str:
        """The command that it runs, from its name: its state may be damaged."""
        match = NAME.fullmatch(self.name)
        return match["verb"] if match else ""

    @property
    def project(self) -> Project:
        return Project(self.folder.parent.parent)

    @property
    def config(self) -> Path:
        return self.folder / "config.yaml"

    @property
    def events(self) -> Path:
        return self.folder / "events.jsonl"

    @property
    def log(self) -> Path:
        return self.folder / "log.txt"

    @property
    def note_file(self) -> Path:
        """The file with what a person wrote about the run; its first line is the run's title in lists."""
        return self.folder / "note.txt"

    @property
    def note(self) -> str:
        return read_text(self.note_file).strip() if self.note_file.is_file() else ""

    @property
    def title(self) -> str:
        """The first line of the note, or the name."""
        return self.note.partition("\n")[0] or self.name

    @property
    def stop_file(self) -> Path:
        """The file that requests a stop."""
        return self.folder / "stop"

    @property
    def state_file(self) -> Path:
        return self.folder / "state.json"

    def read_state(self) -> State:
        try:
            return STATE_FILE.validate_json(read_text(self.state_file))
        except OSError as error:
            reason = error.strerror or str(error)
        except ValidationError as error:
            first = error.errors()[0]
            reason = " ".join([*map(str, first["loc"]), first["msg"]])
        except ValueError as error:
            reason = str(error)
        raise RunError(f"{self.state_file} cannot be read: {reason}.", hint="You can delete the run.")

    def write_state(self, state: State) -> None:
        write_atomically(self.state_file, STATE_FILE.dump_json(state, indent=1).decode())

    def overwrite_state(self, state: State) -> None:
        """Overwrite the state in place, which works on a full disk."""
        state = dataclasses.replace(state, message=state.message[:MAX_MESSAGE])
        with storage_errors(self.state_file), self.state_file.open("r+b") as file:
            file.write(STATE_FILE.dump_json(state, indent=1))
            file.truncate()

    def current_state(self) -> State:
        """Read the state; a run whose process is gone is LOST."""
        try:
            state = self.read_state()
        except RunError as error:
            return State(verb="", status=Status.UNREADABLE, created=0.0, message=str(error))
        if state.status in ACTIVE and not _lives(state):
            return dataclasses.replace(state, status=Status.LOST, message="The process ended unexpectedly.")
        return state


def _lives(state: State) -> bool:
    """Tell whether the process is alive; on another machine, by its heartbeat."""
    silence = abs(time.time() - state.heartbeat)  # abs: the clock may have been set back
    if not state.pid:
        return silence < START_SECONDS
    if state.machine != machine():
        return silence < SILENT_SECONDS
    return is_alive(state.pid, state.identity)


def list_runs(project: Project, *verbs: str) -> list[Run]:
    """List the runs of a project, newest first; all verbs unless some are named."""
    folder = project.runs
    try:
        folders = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise RunError(f"{folder} cannot be read: {error.strerror}.", hint="Correct its permissions.") from error
    return [run for run in map(Run, sorted(folders, reverse=True)) if not verbs or run.verb in verbs]


def active_run(project: Project, *verbs: str) -> Run | None:
    """Return the newest run that is running; any verb unless some are named."""
    return next((run for run in list_runs(project, *verbs) if run.current_state().status in ACTIVE), None)


def find_run(project: Project, name: object) -> Run:
    run = Run(resolve_inside(project.runs, validate_name(name)))
    if not run.folder.is_dir():
        names = ", ".join(known.name for known in list_runs(project)) or "none"
        raise RunError(f"{project.root} has no run named {name!r}.", hint=f"Existing runs: {names}.")
    return run


def start(verb: str, config: Config, project: Project, *, queue: bool = False) -> Run:
    """Start a run, or return the one of this verb that is running already.

    With ``queue``, a run with other settings waits for that one to end.
    """
    make_folder(project.runs)
    _remove_deleted(project.runs)
    with file_lock(project.runs / ".lock"):
        active = active_run(project, verb)
        if active and not queue:
            return active
        ahead = [*([active] if active else []), *queued_runs(project, verb)]
        if same := next((run for run in ahead if read_text(run.config) == config.to_yaml()), None):
            return same  # a second click
        run = _create(verb, config, project, Status.QUEUED if ahead else Status.STARTING)
        if not ahead:
            _launch(run)
    return run


def queued_runs(project: Project, verb: str) -> list[Run]:
    """List the runs that wait for the active one to end, in the order in which they will start."""
    return [run for run in reversed(list_runs(project, verb)) if run.current_state().status is Status.QUEUED]


def start_next(project: Project, verb: str) -> Run | None:
    """Start the run that has waited longest, unless one is running."""
    if not queued_runs(project, verb):
        return None
    with file_lock(project.runs / ".lock"):
        waiting = queued_runs(project, verb)
        if not waiting or active_run(project, verb):
            return None
        waiting[0].write_state(State(verb, Status.STARTING, waiting[0].read_state().created, heartbeat=time.time()))
        _launch(waiting[0])
    return waiting[0]


def create(verb: str, config: Config, project: Project) -> Run:
    """Create a run whose work this process does itself."""
    make_folder(project.runs)
    with file_lock(project.runs / ".lock"):
        _refuse_second(project, verb)
        return _create(verb, config, project)


def resume(run: Run) -> Run:
    """Start a run again in its folder with its settings; does nothing while it is running."""
    with file_lock(run.folder.parent / ".lock"):
        if run.current_state().status not in ACTIVE:
            _reopen(run)
            _launch(run)
    return run


def reopen(run: Run) -> Run:
    """Prepare a run that has ended to be continued by this process."""
    with file_lock(run.folder.parent / ".lock"):
        _reopen(run)
    return run


def _reopen(run: Run) -> None:
    state = run.current_state()
    if state.status is Status.UNREADABLE:
        raise RunError(state.message)
    _refuse_second(run.project, state.verb)
    with storage_errors(run.stop_file):
        run.stop_file.unlink(missing_ok=True)
    run.write_state(State(state.verb, Status.STARTING, state.created, heartbeat=time.time()))


def _refuse_second(project: Project, verb: str) -> None:
    if active := active_run(project, verb):
        raise RunBusyError(f"{active.name} of project {project.root.name} is running.", hint="Stop it first.")


def _create(verb: str, config: Config, project: Project, status: Status = Status.STARTING) -> Run:
    run = Run(make_unique_folder(project.runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{verb}"))
    try:
        write_atomically(run.config, config.to_yaml())
        run.write_state(State(verb=verb, status=status, created=time.time(), heartbeat=time.time()))
    except StorageError:
        shutil.rmtree(run.folder)  # it is still empty
        raise
    return run


class StartListener(Protocol):
    """What is told before this process starts a run, to free what the run needs."""

    def before_run(self, verb: str) -> None: ...


_listeners: "weakref.WeakSet[StartListener]" = weakref.WeakSet()


def notify_before_start(listener: StartListener) -> None:
    """Call ``before_run`` of an object before each run that this process starts, for as long as the object lives."""
    _listeners.add(listener)


def _launch(run: Run) -> None:
    """Start the child; Ctrl-C meanwhile stops it, wherever it is."""
    try:
        _start_child(run)
    except KeyboardInterrupt:
        stop_now(run, grace=1.0)
        raise


def _start_child(run: Run) -> None:
    """Start the child and wait until it has written its process id, so that the next reader finds it alive."""
    for listener in list(_listeners):
        listener.before_run(run.verb)
    try:
        process = start_detached(["-m", "utils", "work", str(run.folder)], run.log)
    except (RunError, StorageError) as error:
        _mark_failed(run, str(error))
        raise
    threading.Thread(target=process.wait, daemon=True).start()  # so that it does not stay a zombie
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        is_over = process.poll() is not None  # before reading: a short run may end in between
        state = run.read_state()
        if state.pid or state.status not in ACTIVE:
            return
        if is_over:
            break
        time.sleep(POLL_SECONDS)
    process.kill()
    message = f"The process did not start; see {run.log}."
    _mark_failed(run, message)
    raise RunError(f"{run.name}: {message}")


def _mark_failed(run: Run, message: str) -> None:
    run.write_state(dataclasses.replace(run.read_state(), status=Status.FAILED, message=message))


def stop_and_save(run: Run) -> None:
    """Request that a run saves and stops at its next step."""
    if run.current_state().status in ACTIVE:
        write_atomically(run.stop_file, "save")


def stop_now(run: Run, *, grace: float = 10.0) -> State:
    """Request that a run stops without saving; end its processes after ``grace`` seconds."""
    state = run.current_state()
    if state.status not in ACTIVE:
        return state
    if state.pid and state.machine != machine():
        raise RunError(f"{run.name} is running on {state.machine}.", hint="Stop it there, or use Stop and save.")
    try:
        write_atomically(run.stop_file, "now")
    except StorageError:
        grace = 0.0  # a full disk must not keep a run alive
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        state = run.current_state()  # a run that was only starting gets its process id meanwhile
        if state.status not in ACTIVE and not is_alive(state.pid, state.identity):
            break
        time.sleep(POLL_SECONDS)
    state = run.current_state()
    end_tree(state.pid, state.identity)
    state = run.current_state()  # it may have written how it ended
    if state.status in ACTIVE or state.status is Status.LOST:
        with contextlib.suppress(StorageError):  # on a full disk it stays LOST
            run.write_state(dataclasses.replace(state, status=Status.STOPPED, message="Stopped without saving."))
    return run.current_state()


def write_note(run: Run, text: str) -> None:
    write_atomically(run.note_file, text.strip() + "\n")


def delete(run: Run) -> None:
    with file_lock(run.folder.parent / ".lock"):
        if run.current_state().status in ACTIVE:
            raise RunBusyError(f"{run.name} is running.", hint="Stop it first.")
        deleted = run.folder.with_name(f".deleted-{run.name}-{time.time_ns()}")
        try:
            run.folder.rename(deleted)
        except OSError as error:
            hint = "Close the programs that use it."
            raise RunBusyError(f"{run.name} is in use: {error.strerror}.", hint=hint) from error
    _remove_deleted(run.folder.parent)
    if deleted.exists():
        hint = "Close the programs that use them. The next deletion or run removes them."
        raise RunBusyError(f"Some files of {run.name} are left in {deleted}.", hint=hint)


def _remove_deleted(folder: Path) -> None:
    """Remove runs that were renamed to be deleted, also by a page that was killed meanwhile."""
    for deleted in folder.glob(".deleted-*"):
        shutil.rmtree(deleted, ignore_errors=True)  # the next call removes the rest
