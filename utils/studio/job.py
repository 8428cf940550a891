"""The child's side of a run: writes its state, heartbeat and events, and notices requests to stop."""

import contextlib
import dataclasses
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from utils.core.errors import AmharicTtsError, StorageError, as_typed
from utils.core.events import EventLog
from utils.core.facts import Fact, Stop, StopRequested, error_to_json
from utils.core.processes import identity, machine
from utils.studio.facts import Ended, Failed, Started
from utils.studio.runs import Run

HEARTBEAT_SECONDS = 5.0


class Job:
    """A run in progress, as a context manager: entering writes who runs it, leaving writes how it ended."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.events = EventLog(run.events)
        self._state = run.read_state()  # only this process writes it from now on, which repairs a damaged file
        self._ended = threading.Event()
        self._signalled = False
        self._handler: signal._HANDLER = None
        self._writing = threading.Lock()

    def __enter__(self) -> Self:
        pid = os.getpid()
        self._write(status="running", pid=pid, identity=identity(pid), machine=machine(), stop=Stop.NO, error={})
        self._catch_signals()
        self._beating = threading.Thread(target=self._beat, daemon=True)
        self._beating.start()
        self.report(Started(pid))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._beating.join()
        self._restore_signals()
        ended = outcome(error)
        if error is not None and ended.error and not isinstance(error, AmharicTtsError):
            with contextlib.suppress(OSError):  # the log is on the disk that may be full
                traceback.print_exception(error)
        self._try(lambda: self.report(ended))
        try:
            failure = error_to_json(ended.error) if ended.error else {}
            self._write(status=ended.status, stop=ended.stop, error=failure, message="")
        except StorageError:  # on a full disk only the existing file can be written
            self._try(lambda: self.run.overwrite_state(self._state))
        self.events.close()

    def report(self, fact: Fact) -> None:
        self.events.report(fact)

    def should_stop(self) -> Stop:
        try:
            if not self.run.events.exists():  # not the folder: a save may have created it again
                return Stop.NOW  # the run was deleted: nobody could see or stop this process
            return Stop.NOW if self.run.stop_file.read_bytes().strip() == b"now" else Stop.SAVE
        except OSError:  # no request, or it is being written and is read next time
            return Stop.SAVE if self._signalled else Stop.NO

    def _catch_signals(self) -> None:
        """Treat SIGTERM as a request to save and stop; only the main thread can."""

        def note(*_: object) -> None:
            self._signalled = True

        if threading.current_thread() is threading.main_thread():
            self._handler = signal.signal(signal.SIGTERM, note)

    def _restore_signals(self) -> None:
        """Restore the signal handler, because the process may continue with other work."""
        if self._handler is not None:
            signal.signal(signal.SIGTERM, self._handler)

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT_SECONDS):
            self._try(self._write)

    def _write(self, **changes: object) -> None:
        with self._writing:
            lines = max(self._state.lines, self.events.number)
            self._state = dataclasses.replace(self._state, heartbeat=time.time(), lines=lines, **changes)  # type: ignore[arg-type]
            self.run.write_state(self._state)

    def _try(self, action: Callable[[], None]) -> None:
        """Do something that must not end the run when the disk is full; the log reports it."""
        try:
            action()
        except StorageError as error:
            with contextlib.suppress(OSError):
                print(error, flush=True)  # noqa: T201  # goes to the log


class GroupJob(Job):
    """One of several processes of a run, such as one per GPU; another process writes the state, one writes events."""

    def __init__(self, run: Run, *, emits_events: bool) -> None:
        super().__init__(run)
        if not emits_events:
            self.events.close()
            self.events = EventLog(Path(os.devnull))

    def __enter__(self) -> Self:
        self._catch_signals()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore_signals()
        self.events.close()
        if failure := outcome(error).error:  # the process that writes the state reads the cause from the events
            with EventLog(self.run.events) as events:
                events.report(Failed(failure))


def outcome(error: BaseException | None) -> Ended:
    if error is None:
        return Ended("finished")
    if isinstance(error, StopRequested):
        return Ended("stopped", error.stop)
    return Ended("failed", error=as_typed(error))
