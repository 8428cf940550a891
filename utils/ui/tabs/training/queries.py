"""Questions that only torch can answer, asked of a child process: the page itself never loads torch."""

import json
import math
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

from utils.config import TrainConfig
from utils.config.flags import command_line
from utils.core.errors import AmharicTtsError, RunBusyError
from utils.core.paths import ROOT
from utils.ui import child_output

PAUSE = 60.0  # seconds between two questions that failed
PATIENCE = 900.0  # seconds; a check of 50 000 clips or an export of a large model to a slow disk

Answer = dict[str, Any]


def ask(question: str, **given: object) -> Answer:
    """Ask a child process, and pass its error on as one of ours.

    Args:
        question: Which of answering.ANSWERS.
        given: What it needs to know, as JSON can hold it.
    """
    words = ["-m", "utils.ui.tabs.training.child_queries", question]
    return child_output.ask(words, read_answer, patience=PATIENCE, given=json.dumps(given))


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


class Trial:
    """The one test of memory that may be under way: two at a time would measure each other."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def run(self, config: TrainConfig) -> Iterator[str]:
        """Run ``python -m utils memory-test`` and yield all that it has printed so far, after each line."""
        words = [sys.executable, *shlex.split(command_line("memory-test", config))[1:]]
        process = self._begin(words)
        text = ""
        try:
            for line in process.stdout or ():
                text += line
                yield text
        finally:
            _end(process)

    def stop(self) -> None:
        """End it, if there is one."""
        if self._process is not None:
            _end(self._process)

    def _begin(self, words: list[str]) -> subprocess.Popen[str]:
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                raise RunBusyError("A test is under way.", hint="Wait until it ends, or stop it.")
            try:
                self._process = subprocess.Popen(
                    words,
                    cwd=ROOT,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    encoding="utf-8",
                    errors="replace",
                )
            except OSError as error:
                raise child_output.unstarted(error) from error
            return self._process


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()  # does nothing to one that is over
    process.wait()
