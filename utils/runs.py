"""Child processes that outlive the page: start, find, watch, stop and delete them.

A run is a folder. Its state is what the folder says and whether the process that it names still lives; nothing is kept
in memory, so the page may be closed, restarted or opened twice.
"""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from utils.config import Config
from utils.errors import RunBusyError, RunError, StorageError
from utils.paths import ROOT, Project, checked_name, inside
from utils.processes import end_tree, is_alive, machine
from utils.storage import locked, read_text, storage_error, write_atomically

START_SECONDS = 60.0  # a cold Python on a busy disk has taken 20
SILENT_SECONDS = 60.0  # a heartbeat comes every 5
POLL_SECONDS = 0.05


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
    """What state.json holds."""

    verb: str
    status: Status
    created: float
    pid: int = 0
    identity: str = ""
    machine: str = ""
    heartbeat: float = 0.0
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
            values = json.loads(read_text(self.state_file))
            known = {field.name for field in dataclasses.fields(State)}
            values = {name: value for name, value in values.items() if name in known}
            return State(**(values | {"status": Status(values["status"])}))
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise RunError(f"{self.state_file} cannot be read: {error}.", hint="The run can be deleted.") from error

    def write_state(self, state: State) -> None:
        """Replace the state as a whole."""
        write_atomically(self.state_file, json.dumps(dataclasses.asdict(state), indent=1, ensure_ascii=False))

    def look(self) -> State:
        """Read the state and correct it by what the processes of this machine say."""
        try:
            state = self.read_state()
        except RunError as error:
            return State(verb="", status=Status.UNREADABLE, created=0.0, message=str(error))
        if state.status in ACTIVE and not _lives(state):
            return dataclasses.replace(state, status=Status.LOST, message="The process is gone without a word.")
        return state


def start(verb: str, config: Config, project: Project) -> Run:
    """Start a run of a verb, or return the one that is at work already."""
    make_folder(project.runs)
    with locked(project.runs / ".lock"):
        for run in list_runs(project):
            state = run.look()
            if state.verb == verb and state.status in ACTIVE:
                return run
        run = _create(verb, config, project)
        _launch(run)
    return run


def resume(run: Run) -> Run:
    """Start a run again in its own folder, with the settings that it has; nothing happens when it is at work."""
    with locked(run.folder.parent / ".lock"):
        state = run.look()
        if state.status is Status.UNREADABLE:
            raise RunError(state.message)
        if state.status not in ACTIVE:
            run.stop_file.unlink(missing_ok=True)
            fresh = State(state.verb, Status.STARTING, state.created, heartbeat=time.time())
            run.write_state(fresh)
            _launch(run)
    return run


def list_runs(project: Project) -> list[Run]:
    """List the runs of a project, newest first."""
    if not project.runs.is_dir():
        return []
    folders = [path for path in project.runs.iterdir() if path.is_dir() and not path.name.startswith(".")]
    return [Run(path) for path in sorted(folders, reverse=True)]


def find_run(project: Project, name: str) -> Run:
    """Find a run by its name."""
    run = Run(inside(project.runs, checked_name(name)))
    if not run.folder.is_dir():
        known = ", ".join(found.name for found in list_runs(project)) or "none"
        raise RunError(f"There is no run {name!r} in {project.root}.", hint=f"There are: {known}.")
    return run


def stop_and_save(run: Run) -> None:
    """Ask a run to save its work and end; it does so at its next step."""
    if run.look().status in ACTIVE:
        write_atomically(run.stop_file, "save")


def stop_now(run: Run, *, grace: float = 10.0) -> State:
    """Ask a run to end without saving, and end its processes when it has not after ``grace`` seconds."""
    state = run.look()
    if state.status not in ACTIVE:
        return state
    _refuse_elsewhere(run, state)
    try:
        write_atomically(run.stop_file, "now")
    except StorageError:
        grace = 0.0  # a full disk must not keep a run alive: end the process itself
    if not _wait_until_gone(state, grace):
        end_tree(state.pid, state.identity)
        run.write_state(dataclasses.replace(run.read_state(), status=Status.STOPPED, message="It was ended at once."))
    return run.look()


def delete(run: Run) -> None:
    """Delete the folder of a run that is not at work."""
    with locked(run.folder.parent / ".lock"):
        if run.look().status in ACTIVE:
            raise RunBusyError(f"{run.name} is at work.", hint="Stop it first.")
        doomed = run.folder.with_name(f".deleted-{run.name}-{time.time_ns()}")
        try:
            run.folder.rename(doomed)
        except OSError as error:
            raise RunBusyError(f"{run.name} is in use: {error.strerror}.", hint="Close what has it open.") from error
    shutil.rmtree(doomed)


def make_folder(path: Path) -> None:
    """Make a folder with its parents."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error


def _create(verb: str, config: Config, project: Project) -> Run:
    folder = _free_folder(project.runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{verb}")
    make_folder(folder)
    run = Run(folder)
    try:
        write_atomically(run.config, config.to_yaml())
        run.write_state(State(verb=verb, status=Status.STARTING, created=time.time(), heartbeat=time.time()))
    except StorageError:
        shutil.rmtree(folder)  # it holds nothing yet
        raise
    return run


def _free_folder(wanted: Path) -> Path:
    folder, number = wanted, 2
    while folder.exists():
        folder, number = wanted.with_name(f"{wanted.name}-{number}"), number + 1
    return folder


def _launch(run: Run) -> None:
    """Start the child and wait until it has written who it is, so that whoever looks next finds it alive."""
    process = _spawn(run)
    threading.Thread(target=process.wait, daemon=True).start()  # or it stays a zombie
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        state = run.read_state()
        if state.pid or state.status not in ACTIVE:
            return
        if process.poll() is not None:
            break
        time.sleep(POLL_SECONDS)
    process.kill()
    message = f"The process did not start; the reason is in {run.log}."
    run.write_state(dataclasses.replace(run.read_state(), status=Status.FAILED, message=message))
    raise RunError(f"{run.name}: {message}")


def _spawn(run: Run) -> subprocess.Popen[bytes]:
    try:
        with run.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "utils", "work", str(run.folder)],
                cwd=ROOT,
                env=os.environ | {"PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in the terminal of the page must not reach it; Windows ignores this
                creationflags=_windows_flags(),
            )
    except OSError as error:
        raise storage_error(run.log, error) from error


def _windows_flags() -> int:
    if sys.platform == "win32":
        return subprocess.CREATE_NEW_PROCESS_GROUP | subprocess.CREATE_NO_WINDOW
    return 0


def _lives(state: State) -> bool:
    """Tell whether the process is there; on another machine only its heartbeat can say."""
    if not state.pid:
        return time.time() - state.heartbeat < START_SECONDS
    if state.machine != machine():
        return time.time() - state.heartbeat < SILENT_SECONDS
    return is_alive(state.pid, state.identity)


def _refuse_elsewhere(run: Run, state: State) -> None:
    if state.pid and state.machine != machine():
        raise RunError(f"{run.name} runs on {state.machine}.", hint="Stop it there, or use stop and save.")


def _wait_until_gone(state: State, grace: float) -> bool:
    deadline = time.monotonic() + grace
    while is_alive(state.pid, state.identity):
        if time.monotonic() >= deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
