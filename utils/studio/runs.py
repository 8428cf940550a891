"""Runs: child processes that outlive the page. Start, find, watch, stop, resume and delete them.

A run is a folder. Its state is read from the folder and corrected by whether its process is alive. Nothing is kept in
memory, so the page can be closed, restarted or opened twice.
"""

import contextlib
import dataclasses
import os
import shutil
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from utils.config import Config
from utils.core.errors import (
    AmharicTtsError,
    ChangedMeanwhileError,
    RunError,
    StorageError,
    UndeletableError,
    UnreadableError,
)
from utils.core.facts import Stop, error_from_json, error_to_json
from utils.core.paths import resolve_inside, validate_name
from utils.core.processes import ENDING_SECONDS, end_tree, is_alive, machine, start_detached
from utils.core.storage import (
    file_lock,
    make_folder,
    make_unique_folder,
    read_object,
    read_text,
    storage_errors,
    write_atomically,
)
from utils.studio.facts import (
    Outcome,
    RunActiveError,
    RunElsewhereError,
    RunLeftoversError,
    RunNotFoundError,
    RunNotStartedError,
    RunStarted,
)
from utils.studio.facts import Status as Status  # noqa: PLC0414  # for all modules that use runs
from utils.studio.paths import Project
from utils.studio.run_folder import ACTIVE as ACTIVE  # noqa: PLC0414
from utils.studio.run_folder import Run as Run  # noqa: PLC0414
from utils.studio.run_state import START_SECONDS, State

POLL_SECONDS = 0.05
OWNER = ".queue.json"  # of the folder with the runs
UNFINISHED: frozenset[Status] = ACTIVE | {"queued"}


def list_runs(project: Project, *verbs: str) -> list[Run]:
    """List the runs of a project, newest first; all verbs unless some are named.

    A folder becomes a run with its first state, or with checkpoints.
    """
    return list(_newest_first(project, verbs))


def _newest_first(project: Project, verbs: Collection[str]) -> Iterator[Run]:
    try:
        folders = sorted(project.runs.iterdir(), reverse=True)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise UnreadableError(project.runs, str(error.strerror)) from error
    for run in map(Run, folders):
        if not run.name.startswith(".") and (not verbs or run.verb in verbs) and run.is_begun:
            yield run


def newest_run(project: Project, *verbs: str) -> Run | None:
    return next(_newest_first(project, verbs), None)


def active_run(project: Project, *verbs: str) -> Run | None:
    """Return the newest run that is running; any verb unless some are named."""
    return next((run for run in _newest_first(project, verbs) if run.current_state().status in ACTIVE), None)


def require_idle(project: Project, *verbs: str) -> None:
    """Raise while a run of a project is active; any verb unless some are named."""
    if active := active_run(project, *verbs):
        raise RunActiveError(active.name, project.name)


def find_run(project: Project, name: object) -> Run:
    run = Run(resolve_inside(project.runs, validate_name(name)))
    if not run.folder.is_dir():
        raise RunNotFoundError(run.name, project.root, tuple(known.name for known in list_runs(project)))
    return run


class Start(NamedTuple):
    """A run that was asked for: started, joined or queued."""

    run: Run
    outcome: Outcome
    ahead: str = ""  # the run that it waits for

    @property
    def fact(self) -> RunStarted:
        return RunStarted(self.run.name, self.run.folder, self.outcome, self.ahead)


def start(verb: str, config: Config, project: Project, *, before: Callable[[], object] = lambda: None) -> Start:
    """Start a run; while another of its kind is active it waits, unless that one has the same settings.

    ``before`` is called only if a process is started now: it frees what the run needs.
    """
    make_folder(project.runs)
    _remove_deleted(project.runs)
    with lock(project):
        active = active_run(project, verb)
        ahead = [*([active] if active else []), *queued_runs(project, verb)]
        if same := next((run for run in ahead if read_text(run.config) == config.to_signed_yaml()), None):
            return Start(same, "joined")
        run = _new_run(verb, project)
        if not ahead:
            with stopped_by_interrupt(run):
                _write_new(run, verb, config, "starting")
                before()
                launch(run)
                return Start(run, "started")
        _write_new(run, verb, config, "queued")
    watch_queue(project)
    return Start(run, "queued", ahead[-1].name)


def lock(project: Project) -> contextlib.AbstractContextManager[None]:
    """Lock the runs of a project against other processes that create, start, stop or delete them."""
    return file_lock(project.runs / ".lock")


def queued_runs(project: Project, *verbs: str) -> list[Run]:
    """List the runs that wait for the active one to end, in the order in which they will start."""
    return [run for run in reversed(list_runs(project, *verbs)) if run.current_state().status == "queued"]


def watch_queue(project: Project) -> None:
    """Make sure that a process starts what is queued; whoever looks at the runs of a project calls this.

    The process does nothing else, so that what ends a run (lack of memory, a closed page) does not end the queue.
    """
    if queued_runs(project) and not is_served(project):
        start_detached(["-m", "utils", "work", str(project.runs), "--queue"], Path(os.devnull))


def is_served(project: Project) -> bool:
    """Return whether a process starts the queued runs."""
    owner = read_object(project.runs / OWNER)
    return is_alive(int(owner.get("pid", 0)), str(owner.get("identity", "")))


def create(verb: str, config: Config, project: Project) -> Run:
    """Create a run whose work this process does itself."""
    make_folder(project.runs)
    with lock(project):
        require_idle(project, verb)
        run = _new_run(verb, project)
        _write_new(run, verb, config, "starting")
        return run


def resume(run: Run, *, before: Callable[[], object] = lambda: None) -> Run:
    """Start a run again in its folder with its settings; does nothing while it is active."""
    with lock(run.project):
        if run.current_state().status not in ACTIVE:
            with stopped_by_interrupt(run):
                _reopen(run)
                before()
                launch(run)
    return run


def reopen(run: Run) -> Run:
    """Prepare a run that has ended to be continued by this process."""
    with lock(run.project):
        _reopen(run)
    return run


def _reopen(run: Run) -> None:
    state = run.current_state()
    if state.status == "unreadable":
        raise error_from_json(state.error)
    require_idle(run.project, state.verb)
    with storage_errors(run.stop_file):
        run.stop_file.unlink(missing_ok=True)
    run.write_state(State(state.verb, "starting", state.created, heartbeat=time.time()))


@contextlib.contextmanager
def stopped_by_interrupt(run: Run) -> Iterator[None]:
    """Let Ctrl-C stop a run that is being started, wherever it is."""
    try:
        yield
    except KeyboardInterrupt:
        stop_now(run, grace=1.0)
        raise


def _new_run(verb: str, project: Project) -> Run:
    return Run(make_unique_folder(project.runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{verb}"))


def _write_new(run: Run, verb: str, config: Config, status: Status) -> None:
    try:
        write_atomically(run.config, config.to_signed_yaml())
        run.write_state(State(verb=verb, status=status, created=time.time(), heartbeat=time.time()))
    except StorageError:
        shutil.rmtree(run.folder)  # it is still empty
        raise


def launch(run: Run) -> None:
    """Start the child of a run and wait until it has written its process id, so that the next reader finds it alive."""
    try:
        process = start_detached(["-m", "utils", "work", str(run.folder)], run.log)
    except (RunError, StorageError) as error:
        _mark_failed(run, error)
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
    not_started = RunNotStartedError(run.name, run.log)
    _mark_failed(run, not_started)
    raise not_started


def _mark_failed(run: Run, error: AmharicTtsError) -> None:
    run.write_state(dataclasses.replace(run.read_state(), status="failed", error=error_to_json(error)))


def stop(run: Run, *, now: bool) -> State | None:
    """Stop a run at once, or let it save first; return how it ended, or None while it saves."""
    if now:
        return stop_now(run)
    return None if stop_and_save(run) else run.current_state()


def stop_and_save(run: Run) -> bool:
    """Request that a run saves and stops at its next step; a queued one leaves the queue.

    Return whether it will do so; a run that had ended, or was queued, will not.
    """
    if _leave_queue(run) or run.current_state().status not in ACTIVE:
        return False
    write_atomically(run.stop_file, "save")
    return run.current_state().status in ACTIVE  # it may have ended before it could read the request


def _leave_queue(run: Run) -> bool:
    if run.current_state().status != "queued":
        return False
    with lock(run.project):
        state = run.current_state()
        if is_queued := state.status == "queued":
            run.write_state(dataclasses.replace(state, status="stopped", stop=Stop.NOW))
    return is_queued


def stop_now(run: Run, *, grace: float = 10.0) -> State:
    """Request that a run stops without saving; after ``grace`` seconds, end its processes, and soon kill them."""
    _leave_queue(run)
    state = run.current_state()
    if state.status not in ACTIVE:
        return state
    if state.pid and state.machine != machine():
        raise RunElsewhereError(run.name, state.machine)
    ending = min(grace, ENDING_SECONDS)
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
    end_tree(state.pid, state.identity, grace=ending)
    state = run.current_state()  # it may have written how it ended
    if state.status in ACTIVE or state.status == "lost":
        with contextlib.suppress(StorageError):  # on a full disk it stays LOST
            run.write_state(dataclasses.replace(state, status="stopped", stop=Stop.NOW, error={}))
    return run.current_state()


def write_note(run: Run, text: str, typed_on: Collection[str] | None = None) -> None:
    """Store a note, if the stored one is still one of ``typed_on``."""
    if typed_on is not None and run.note not in typed_on:
        raise ChangedMeanwhileError(run.name)
    write_atomically(run.note_file, text.strip() + "\n")


def delete(run: Run) -> None:
    with lock(run.project):
        if run.current_state().status in ACTIVE:
            raise RunActiveError(run.name, run.project.name)
        deleted = run.folder.with_name(f".deleted-{run.name}-{time.time_ns()}")
        try:
            run.folder.rename(deleted)
        except OSError as error:
            raise UndeletableError(run.folder, str(error.strerror)) from error
    _remove_deleted(run.folder.parent)
    if deleted.exists():
        raise RunLeftoversError(run.name, deleted)


def _remove_deleted(folder: Path) -> None:
    """Remove runs that were renamed to be deleted, also by a page that was killed meanwhile."""
    for deleted in folder.glob(".deleted-*"):
        shutil.rmtree(deleted, ignore_errors=True)  # the next call removes the rest
