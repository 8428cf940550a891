"""The process that starts the queued runs of a project; ``runs.watch_queue`` starts it where it is needed."""

import contextlib
import os
import time

from utils.core.errors import AmharicTtsError
from utils.core.processes import identity
from utils.core.storage import write_document
from utils.studio.paths import Project
from utils.studio.run_state import State
from utils.studio.runs import OWNER, active_run, is_served, launch, lock, queued_runs

QUEUE_SECONDS = 0.5


def serve_queue(project: Project) -> None:
    """Start the queued runs of a project, each when the one before it has ended, until none is left."""
    path = project.runs / OWNER
    pid = os.getpid()
    with lock(project):
        if is_served(project):
            return
        write_document(path, {"pid": pid, "identity": identity(pid)})
    while project.runs.is_dir():
        for verb in {run.verb for run in queued_runs(project)}:
            with contextlib.suppress(AmharicTtsError):  # the state of the run says why it did not start
                start_next(project, verb)
        with lock(project):
            if not queued_runs(project):
                path.unlink(missing_ok=True)  # with the lock: what is queued after this finds no owner
                return
        time.sleep(QUEUE_SECONDS)


def start_next(project: Project, verb: str) -> None:
    """Start the run that has waited longest, unless one is active."""
    with lock(project):
        waiting = queued_runs(project, verb)
        if waiting and not active_run(project, verb):
            waiting[0].write_state(State(verb, "starting", waiting[0].read_state().created, heartbeat=time.time()))
            launch(waiting[0])
