"""Questions that only torch can answer, asked of a child process: the page itself never loads torch."""

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

PAUSE = 60.0  # seconds between two questions that failed
TIMEOUT = 900.0  # seconds; a check of 50 000 clips or an export of a large model to a slow disk

Answer = dict[str, Any]


def ask(question: str, **given: object) -> Answer:
    """Ask a child process, and pass its error on as one of ours.

    Args:
        question: Which of answering.ANSWERS.
        given: What it needs to know, as JSON can hold it.
    """
    arguments = ["-m", "utils.ui.tabs.training.child_queries", question]
    return query(arguments, read_answer, timeout=TIMEOUT, text=json.dumps(given))


def read_answer(printed: str) -> Answer:
    """Read the last line that the child printed; an error in it is raised."""
    answer = json.loads(printed.strip().splitlines()[-1])
    if (fault := answer.get("error")) is not None:
        raise AmharicTtsError(str(fault), hint=str(answer.get("hint", "")))
    return dict(answer)


class Remembered:
    """An answer that does not change while the page runs: asked until it is there, beside everything else.

    Args:
        question: Which of answering.ANSWERS.
    """

    def __init__(self, question: str) -> None:
        self.question = question
        self.answer: Answer | None = None
        self.fault: AmharicTtsError | None = None
        self._lock = threading.Lock()
        self._next = 0.0  # when it may be asked, on the monotonic clock

    def known(self) -> Answer | None:
        """Return the answer where it is known already, else begin to ask; after a failure, not at once."""
        with self._lock:
            if time.monotonic() >= self._next:
                self._next = math.inf
                threading.Thread(target=self._ask, name=f"asks-{self.question}", daemon=True).start()
        return self.answer

    def _ask(self) -> None:
        try:
            self.answer, self.fault = ask(self.question), None
        except AmharicTtsError as error:
            self.fault, self._next = error, time.monotonic() + PAUSE


def settings(config: TrainConfig) -> Mapping[str, object]:
    """Return settings as a child reads them."""
    return config.model_dump(mode="json")


class Cancelled(Exception):  # noqa: N818  # a person asked for it
    """The memory test was cancelled."""


class Trial:
    """The one memory test that may run at a time: two would measure each other."""

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
