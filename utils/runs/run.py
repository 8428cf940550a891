"""Child processes that outlive the page: start, find, watch, stop and delete them.

A run is a folder. Its state is what the folder says and whether the process that it names still lives; nothing is kept
in memory, so the page may be closed, restarted or opened twice.
"""

import contextlib
import dataclasses
import functools
import json
import re
import shutil
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from utils.config import Config
from utils.core.errors import RunBusyError, RunError, StorageError
from utils.core.paths import Project, resolve_inside, validate_name
from utils.core.storage import file_lock, make_folder, make_unique_folder, read_text, storage_error, write_atomically
from utils.runs.processes import end_tree, is_alive, machine, start_detached

START_SECONDS = 60.0  # a cold Python on a busy disk has taken 20
SILENT_SECONDS = 60.0  # a heartbeat comes every 5
POLL_SECONDS = 0.05
MAX_MESSAGE = 1000  # letters that fit, in any writing, into the one block that every file has
NAME = re.compile(r"[^-]+-[^-]+-(?P<verb>.+?)(-\d+)?")  # such as 20260101-120000-prepare-2

Moment = Annotated[float, Field(ge=0, le=4e9)]  # seconds since 1970, within what calendars can show


class Status(StrEnum):
    """What a run is doing; LOST and UNREADABLE are found by looking, never written."""

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
    """What state.json holds; its types are checked when it is read."""

    verb: Annotated[str, Field(pattern=r"^[a-z][a-z-]*$")]
    status: Status
    created: Moment
    pid: int = 0
    identity: str = ""
    machine: str = ""
    heartbeat: Moment = 0.0
    message: str = ""


@dataclass(frozen=True)
class Run:
    """One run on disk.

    Args:
        folder: Where everything about it lies.
    """

    folder: Path

    @property
    def name(self) -> str:
        """Return the name that a person sees."""
        return self.folder.name

    @property
    def verb(self) -> str:
        """Return what it does, as its start has put it into the name: its state may be damaged."""
        found = NAME.fullmatch(self.name)
        return found["verb"] if found else ""

    @property
    def config(self) -> Path:
        """Return the file of its settings."""
        return self.folder / "config.yaml"

    @property
    def events(self) -> Path:
        """Return the file of its events."""
        return self.folder / "events.jsonl"

    @property
    def log(self) -> Path:
        """Return the file of everything that it printed."""
        return self.folder / "log.txt"

    @property
    def stop_file(self) -> Path:
        """Return the file that asks it to stop."""
        return self.folder / "stop"

    @property
    def state_file(self) -> Path:
        """Return the file of its state."""
        return self.folder / "state.json"

    def read_state(self) -> State:
        """Read the state as it was last written."""
        try:
            return _checker().validate_json(read_text(self.state_file))
        except OSError as error:
            reason = error.strerror or str(error)
        except ValidationError as error:
            first = error.errors()[0]
            reason = " ".join([*map(str, first["loc"]), first["msg"]])
        except ValueError as error:
            reason = str(error)
        raise RunError(f"{self.state_file} cannot be read: {reason}.", hint="The run can be deleted.")

    def write_state(self, state: State) -> None:
        """Replace the state as a whole."""
        write_atomically(self.state_file, _as_json(state))

    def overwrite_state(self, state: State) -> None:
        """Write over the old state, which takes no room: the last words of a run whose disk is full."""
        said = dataclasses.replace(state, message=state.message[:MAX_MESSAGE])
        try:
            with self.state_file.open("r+b") as file:
                file.write(_as_json(said).encode())
                file.truncate()
        except OSError as error:
            raise storage_error(self.state_file, error) from error

    def current_state(self) -> State:
        """Read the state and correct it by what the processes of this machine say."""
        try:
            state = self.read_state()
        except RunError as error:
            return State(verb="", status=Status.UNREADABLE, created=0.0, message=str(error))
        if state.status in ACTIVE and not _lives(state):
            return dataclasses.replace(state, status=Status.LOST, message="The process is gone without a word.")
        return state


def _as_json(state: State) -> str:
    return json.dumps(dataclasses.asdict(state), indent=1, ensure_ascii=False)


def start(verb: str, config: Config, project: Project) -> Run:
    """Start a run of a verb, or return the one that is at work already."""
    make_folder(project.runs)
    _sweep(project.runs)
    with file_lock(project.runs / ".lock"):
        if active := _active(verb, project.runs):
            return active
        run = _create(verb, config, project)
        _launch(run)
    return run


def create(verb: str, config: Config, project: Project) -> Run:
    """Make the folder of a run whose work this very process will do."""
    make_folder(project.runs)
    with file_lock(project.runs / ".lock"):
        if active := _active(verb, project.runs):
            raise RunBusyError(f"{active.name} is at work.", hint="Stop it first.")
        return _create(verb, config, project)


def resume(run: Run) -> Run:
    """Start a run again in its own folder, with the settings that it has; nothing happens when it is at work."""
    with file_lock(run.folder.parent / ".lock"):
        state = run.current_state()
        if state.status is Status.UNREADABLE:
            raise RunError(state.message)
        if state.status not in ACTIVE:
            if other := _active(state.verb, run.folder.parent):
                raise RunBusyError(f"{other.name} is at work.", hint="Stop it first.")
            _withdraw_stop(run)
            fresh = State(state.verb, Status.STARTING, state.created, heartbeat=time.time())
            run.write_state(fresh)
            _launch(run)
    return run


def list_runs(project: Project, *verbs: str) -> list[Run]:
    """List the runs of a project, newest first; of some verbs only where they are named."""
    return [run for run in _runs_in(project.runs) if not verbs or run.verb in verbs]


def active_run(project: Project, *verbs: str) -> Run | None:
    """Return a run that is at work, if there is one; of some verbs only where they are named."""
    return next((run for run in list_runs(project, *verbs) if run.current_state().status in ACTIVE), None)


def _runs_in(folder: Path) -> list[Run]:
    try:
        folders = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise RunError(f"{folder} cannot be read: {error.strerror}.", hint="Mend the rights of the folder.") from error
    return [Run(path) for path in sorted(folders, reverse=True)]


def _active(verb: str, folder: Path) -> Run | None:
    looks = ((run, run.current_state()) for run in _runs_in(folder))
    return next((run for run, state in looks if state.verb == verb and state.status in ACTIVE), None)


def find_run(project: Project, name: object) -> Run:
    """Find a run by its name."""
    run = Run(resolve_inside(project.runs, validate_name(name)))
    if not run.folder.is_dir():
        known = ", ".join(found.name for found in list_runs(project)) or "none"
        raise RunError(f"There is no run {name!r} in {project.root}.", hint=f"There are: {known}.")
    return run


def stop_and_save(run: Run) -> None:
    """Ask a run to save its work and end; it does so at its next step."""
    if run.current_state().status in ACTIVE:
        write_atomically(run.stop_file, "save")


def stop_now(run: Run, *, grace: float = 10.0) -> State:
    """Ask a run to end without saving, and end its processes when it has not after ``grace`` seconds."""
    state = run.current_state()
    if state.status not in ACTIVE:
        return state
    _refuse_elsewhere(run, state)
    try:
        write_atomically(run.stop_file, "now")
    except StorageError:
        grace = 0.0  # a full disk must not keep a run alive: end the process itself
    _wait_until_gone(run, grace)
    state = run.current_state()
    end_tree(state.pid, state.identity)
    left = run.current_state()  # it may have found the time to say itself how it ended
    if left.status in ACTIVE or left.status is Status.LOST:
        with contextlib.suppress(StorageError):  # on a full disk it is shown as lost, which is true too
            run.write_state(dataclasses.replace(left, status=Status.STOPPED, message="It was ended at once."))
    return run.current_state()


def delete(run: Run) -> None:
    """Delete the folder of a run that is not at work."""
    with file_lock(run.folder.parent / ".lock"):
        if run.current_state().status in ACTIVE:
            raise RunBusyError(f"{run.name} is at work.", hint="Stop it first.")
        doomed = run.folder.with_name(f".deleted-{run.name}-{time.time_ns()}")
        try:
            run.folder.rename(doomed)
        except OSError as error:
            raise RunBusyError(f"{run.name} is in use: {error.strerror}.", hint="Close what has it open.") from error
    _sweep(run.folder.parent)
    if doomed.exists():
        raise RunBusyError(
            f"Parts of {run.name} are left in {doomed}.", hint="Close what has them open, then start a run."
        )


def _sweep(folder: Path) -> None:
    """Remove what was renamed to be deleted, also by a page that was killed in the middle of it."""
    for doomed in folder.glob(".deleted-*"):
        shutil.rmtree(doomed, ignore_errors=True)  # another page may be at it; the next sweep takes the rest


def _create(verb: str, config: Config, project: Project) -> Run:
    folder = make_unique_folder(project.runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{verb}")
    run = Run(folder)
    try:
        write_atomically(run.config, config.to_yaml())
        run.write_state(State(verb=verb, status=Status.STARTING, created=time.time(), heartbeat=time.time()))
    except StorageError:
        shutil.rmtree(folder)  # it holds nothing yet
        raise
    return run


def _launch(run: Run) -> None:
    """Start the child and wait until it has written who it is, so that whoever looks next finds it alive."""
    try:
        process = start_detached(["-m", "utils", "work", str(run.folder)], run.log)
    except (RunError, StorageError) as error:
        _mark_failed(run, str(error))
        raise
    threading.Thread(target=process.wait, daemon=True).start()  # or it stays a zombie
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        is_over = process.poll() is not None  # asked first: a short run may write its end and be gone after the look
        state = run.read_state()
        if state.pid or state.status not in ACTIVE:
            return
        if is_over:
            break
        time.sleep(POLL_SECONDS)
    process.kill()
    message = f"The process did not start; the reason is in {run.log}."
    _mark_failed(run, message)
    raise RunError(f"{run.name}: {message}")


def _mark_failed(run: Run, message: str) -> None:
    run.write_state(dataclasses.replace(run.read_state(), status=Status.FAILED, message=message))


def _lives(state: State) -> bool:
    """Tell whether the process is there; on another machine only its heartbeat can say."""
    silence = abs(time.time() - state.heartbeat)  # abs: a clock that was set back keeps nobody alive
    if not state.pid:
        return silence < START_SECONDS
    if state.machine != machine():
        return silence < SILENT_SECONDS
    return is_alive(state.pid, state.identity)


def _refuse_elsewhere(run: Run, state: State) -> None:
    if state.pid and state.machine != machine():
        raise RunError(f"{run.name} runs on {state.machine}.", hint="Stop it there, or use stop and save.")


def _wait_until_gone(run: Run, grace: float) -> None:
    deadline = time.monotonic() + grace
    while time.monotonic() < deadline:
        state = run.current_state()  # each time anew: a run that was only starting says meanwhile who it is
        if state.status not in ACTIVE and not is_alive(state.pid, state.identity):
            return
        time.sleep(POLL_SECONDS)


def _withdraw_stop(run: Run) -> None:
    try:
        run.stop_file.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(run.stop_file, error) from error


@functools.cache
def _checker() -> TypeAdapter[State]:
    return TypeAdapter(State)
