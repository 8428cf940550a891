"""Background jobs of a project: they continue when the visitor leaves, one of each kind at a time."""

import logging
import threading
import time
from collections.abc import Callable

from utils.core.errors import AmharicTtsError, RunBusyError
from utils.core.events import Progress

STOP_SECONDS = 3.0  # for what a stopped job still writes

logger = logging.getLogger(__name__)


class JobStoppedError(Exception):
    """Somebody stopped the job."""


class BackgroundJob:
    """A task in its own thread, with its progress, its result or its error.

    The task gets the job, calls its ``report`` and ``check``, and returns the result.
    """

    def __init__(self, task: Callable[["BackgroundJob"], object]) -> None:
        self.progress = Progress()
        self.result: object = None
        self.error: Exception | None = None
        self._task = task
        self._stop = threading.Event()
        self._started = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="job", daemon=True)
        self._thread.start()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    @property
    def is_running(self) -> bool:
        return self._thread.is_alive()

    def report(self, step: int = 0, total: int = 0, message: str = "") -> None:
        """Publish the progress; called by the task."""
        self.check()
        self.progress = Progress(step, total, message=message)

    def check(self) -> None:
        """Raise ``JobStoppedError`` if somebody stopped the job; called by the task."""
        if self._stop.is_set():
            raise JobStoppedError

    def stop(self) -> None:
        """Stop it, and wait a moment for what it still writes."""
        self._stop.set()
        self.wait(STOP_SECONDS)

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)

    def _run(self) -> None:
        try:
            self.result = self._task(self)
        except JobStoppedError:
            return
        except Exception as error:
            self.error = error
            if not isinstance(error, AmharicTtsError):
                logger.exception("A background job failed.")


class BackgroundJobs:
    """The newest job of each kind of each project."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str], BackgroundJob] = {}
        self._lock = threading.Lock()

    def start(self, project: str, kind: str, task: Callable[[BackgroundJob], object]) -> BackgroundJob:
        """Start a job, unless one of its kind is running in this project."""
        with self._lock:
            job = self.get(project, kind)
            if job and job.is_running:
                raise RunBusyError("This is already running.", hint="Wait until it ends, or stop it.")
            self._jobs[project, kind] = job = BackgroundJob(task)
            return job

    def get(self, project: str, kind: str) -> BackgroundJob | None:
        return self._jobs.get((project, kind))

    def stop(self, project: str, kind: str) -> bool:
        """Stop the running job of a kind; return whether there was one."""
        job = self.get(project, kind)
        if job is None or not job.is_running:
            return False
        job.stop()
        return True
