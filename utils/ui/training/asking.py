"""Questions that only torch can answer, asked of a child process: the page itself never loads torch."""

import json
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from utils.config import TrainConfig
from utils.errors import AmharicTtsError, RunBusyError, RunError
from utils.flags import command_line
from utils.paths import ROOT

PATIENCE = 900.0  # seconds; a check of 50 000 clips or an export of a large model to a slow disk

Answer = dict[str, Any]


def ask(question: str, **given: object) -> Answer:
    """Ask a child process, and pass its error on as one of ours.

    Args:
        question: Which of answering.ANSWERS.
        given: What it needs to know, as JSON can hold it.
    """
    words = [sys.executable, "-m", "utils.ui.training.answering", question]
    try:
        done = subprocess.run(
            words,
            cwd=ROOT,
            input=json.dumps(given),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            encoding="utf-8",
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(
            f"There was no answer within {PATIENCE:g} s.", hint="Try again when less is going on."
        ) from error
    return read_answer(done.stdout, done.stderr)


def read_answer(printed: str, complaints: str = "") -> Answer:
    """Read the last line that the child printed; when that is no answer, its last complaint says why."""
    try:
        answer = json.loads(printed.strip().splitlines()[-1])
        fault = answer.get("error")
    except (ValueError, IndexError, AttributeError) as error:
        reason = (complaints.strip().splitlines() or ["it printed nothing readable"])[-1]
        raise RunError(
            f"The calculation broke off: {reason}.", hint="Try it again; python -m utils doctor finds what is missing."
        ) from error
    if fault is not None:
        raise AmharicTtsError(str(fault), hint=str(answer.get("hint", "")))
    return dict(answer)


class Remembered:
    """An answer that does not change while the page runs: asked once, beside everything else.

    Args:
        question: Which of answering.ANSWERS.
    """

    def __init__(self, question: str) -> None:
        self.question = question
        self.answer: Answer | None = None
        self.fault: AmharicTtsError | None = None
        self._lock = threading.Lock()
        self._asked = False

    def known(self) -> Answer | None:
        """Return the answer where it is known already; the first time, begin to ask."""
        with self._lock:
            if not self._asked:
                self._asked = True
                threading.Thread(target=self._ask, name=f"asks-{self.question}", daemon=True).start()
        return self.answer

    def _ask(self) -> None:
        try:
            self.answer = ask(self.question)
        except AmharicTtsError as error:
            self.fault = error


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
            self.stop()

    def stop(self) -> None:
        """End it, if there is one."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            if process.poll() is None:
                process.kill()
            process.wait()

    def _begin(self, words: list[str]) -> subprocess.Popen[str]:
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                raise RunBusyError("A test is under way.", hint="Wait until it ends, or stop it.")
            self._process = subprocess.Popen(
                words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace"
            )
            return self._process
