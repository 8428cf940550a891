"""Queries that need torch, answered by a child process: the page itself never loads torch."""

import json
import math
import shlex
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from utils.config import TrainConfig
from utils.config.flags import command_line
from utils.core.errors import AmharicTtsError, RunBusyError
from utils.runs.processes import ChildError, query, read_lines

RETRY_SECONDS = 60.0  # after a query that failed
TIMEOUT = 900.0  # seconds; for a check of 50,000 clips, or an export to a slow disk

Result = dict[str, Any]


def ask(name: str, **arguments: object) -> Result:
    """Run a query of ``child_queries.QUERIES`` in a child process; its error is raised here."""
    command = ["-m", "utils.ui.tabs.training.child_queries", name]
    return query(command, read_result, timeout=TIMEOUT, text=json.dumps(arguments))


def read_result(output: str) -> Result:
    """Read the last line that the child printed; raise the error in it."""
    result = json.loads(output.strip().splitlines()[-1])
    if (error := result.get("error")) is not None:
        raise AmharicTtsError(str(error), hint=str(result.get("hint", "")))
    return dict(result)


def as_json(config: TrainConfig) -> Mapping[str, object]:
    """Return settings as a query takes them."""
    return config.model_dump(mode="json")


class CachedQuery:
    """A query whose result does not change while the page runs; asked in the background."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.result: Result | None = None
        self.error: AmharicTtsError | None = None
        self._lock = threading.Lock()
        self._next = 0.0  # when it may be asked, on the monotonic clock

    def get(self) -> Result | None:
        """Return the result if it is known; else ask for it."""
        with self._lock:
            if time.monotonic() >= self._next:
                self._next = math.inf
                threading.Thread(target=self._ask, name=f"query-{self.name}", daemon=True).start()
        return self.result

    def _ask(self) -> None:
        try:
            self.result, self.error = ask(self.name), None
        except AmharicTtsError as error:
            self.error, self._next = error, time.monotonic() + RETRY_SECONDS


class Cancelled(Exception):  # noqa: N818  # not an error
    """The memory test was cancelled."""


class MemoryTest:
    """The memory test; only one runs at a time, since two would measure each other."""

    def __init__(self) -> None:
        self._running = threading.Lock()
        self._cancelled = threading.Event()

    def run(self, config: TrainConfig) -> Iterator[str]:
        """Run ``python -m utils memory-test`` and yield everything printed so far, after each line."""
        if not self._running.acquire(blocking=False):
            raise RunBusyError("A memory test is running.", hint="Wait until it ends, or stop it.")
        self._cancelled.clear()
        text = ""
        try:
            for line in read_lines(shlex.split(command_line("memory-test", config))[1:], check=self._check):
                text += f"{line}\n"
                yield text
        except (Cancelled, ChildError):  # the output says why it failed
            return
        finally:
            self._running.release()

    def stop(self) -> None:
        """Cancel the test that is running, if there is one."""
        self._cancelled.set()

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise Cancelled
