"""The child's side of a run: says that it lives, writes events, and hears when it should stop."""

import contextlib
import dataclasses
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Self

from utils.core.errors import AmharicTtsError, StorageError
from utils.core.events import EventLog
from utils.runs import Run, Status
from utils.runs.processes import identity, machine

HEARTBEAT_SECONDS = 5.0


class StopRequested(Exception):  # noqa: N818  # a wish, not an error
    """Raised by a job at a safe point once somebody asked it to stop."""


class Job:
    """One run at work, as a context: entering says who works, leaving says how it ended.

    Args:
        run: The run whose work this process does.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.events = EventLog(run.events)
        self._state = run.read_state()  # from here on this process alone says it, so a spoiled file is mended
        self._ended = threading.Event()
        self._signalled = False
        self._handler: signal._HANDLER = None
        self._writing = threading.Lock()

    def __enter__(self) -> Self:
        self._write(
            status=Status.RUNNING, pid=os.getpid(), identity=identity(os.getpid()), machine=machine(), message=""
        )
        self._hear_signals()
        self._beating = threading.Thread(target=self._beat, daemon=True)
        self._beating.start()
        self.events.emit("started", pid=os.getpid())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._ended.set()
        self._beating.join()
        self._let_go_of_signals()
        status, message = outcome(error)
        if error is not None and status is Status.FAILED:
            with contextlib.suppress(OSError):  # the log lies on the disk that may be full
                traceback.print_exception(error)
        self._try(lambda: self.events.emit("ended", status=status, message=message))
        try:
            self._write(status=status, message=message)
        except StorageError:  # a full disk has no room for a new file, and the old one keeps its own
            self._try(lambda: self.run.overwrite_state(self._state))
        self.events.close()
        return isinstance(error, Exception)

    def stop_request(self) -> str:
        """Return "save" or "now" once somebody asked this run to stop, else nothing."""
        try:
            if not self.run.events.exists():  # not the folder: a save in between has made that anew
                return "now"  # deleted under our feet: nobody could see or stop this process any more
            return "now" if self.run.stop_file.read_bytes().strip() == b"now" else "save"
        except OSError:  # there is no wish, or it is being written at this moment and is heard next time
            return "save" if self._signalled else ""

    def stop_if_requested(self, save: Callable[[], object] = lambda: None) -> None:
        """Raise Stop when somebody asked for it, after saving when that was asked too.

        Args:
            save: Saves the work; by default all of it is on the disk already.
        """
        request = self.stop_request()
        if request == "save":
            save()
        if request:
            raise StopRequested(request)

    def _hear_signals(self) -> None:
        """Take the system's request to end as a wish to save; only the main thread may, so others do without."""
        if threading.current_thread() is threading.main_thread():
            self._handler = signal.signal(signal.SIGTERM, self._on_signal)

    def _let_go_of_signals(self) -> None:
        """Give the signal back, because the process may go on with other things."""
        if self._handler is not None:
            signal.signal(signal.SIGTERM, self._handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002  # the signature of a handler
        self._signalled = True

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT_SECONDS):
            self._try(self._write)

    def _write(self, **changes: object) -> None:
        with self._writing:
            self._state = dataclasses.replace(self._state, heartbeat=time.time(), **changes)  # type: ignore[arg-type]
            self.run.write_state(self._state)

    def _try(self, action: Callable[[], None]) -> None:
        """Do what is not worth losing the run for when the disk is full; the log tells of it."""
        try:
            action()
        except StorageError as error:
            with contextlib.suppress(OSError):
                print(error, flush=True)  # noqa: T201  # the child's output is its log


class GroupJob(Job):
    """One of several processes that do the work of a run; another one keeps its state.

    Args:
        run: The run whose work this process shares.
        speaks: Whether it writes the events of all.
    """

    def __init__(self, run: Run, *, speaks: bool) -> None:
        super().__init__(run)
        if not speaks:
            self.events.close()
            self.events = NullEventLog(run.events)

    def __enter__(self) -> Self:
        self._hear_signals()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._let_go_of_signals()
        self.events.close()
        status, message = outcome(error)
        if status is Status.FAILED:  # whoever keeps the state learns the cause from the events
            with EventLog(self.run.events) as events:
                events.emit("failed", message=message)
        return isinstance(error, StopRequested)


class NullEventLog(EventLog):
    """Writes nothing: one process speaks for all."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def emit(self, kind: str, **fields: object) -> None:
        """Drop an event."""

    def close(self) -> None:
        """Close nothing."""


def outcome(error: BaseException | None) -> tuple[Status, str]:
    """Put the end of a job into a status and one sentence."""
    if error is None:
        return Status.FINISHED, ""
    if isinstance(error, StopRequested):
        return Status.STOPPED, "Its work was saved." if str(error) == "save" else "It was stopped without saving."
    if isinstance(error, AmharicTtsError):
        return Status.FAILED, str(error)
    return Status.FAILED, f"{type(error).__name__}: {error}. The log has the details; please report it."
