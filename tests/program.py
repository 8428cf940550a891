"""A program in a process of its own, whose output can be waited for."""

import re
import subprocess
import sys
from pathlib import Path

from tests.waiting import wait_for
from utils.core.paths import ROOT

START_SECONDS = 60.0


class Program:
    """Python with some words; what it prints goes to a file."""

    def launch(self, log: Path, *words: str, environment: dict[str, str] | None = None) -> None:
        self.log = log
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, *words], cwd=ROOT, env=environment, stdout=file, stderr=subprocess.STDOUT
            )

    @property
    def lines(self) -> list[str]:
        return self.log.read_text(encoding="utf-8").splitlines(keepends=True)

    def wait_for(self, pattern: str) -> str:
        """Wait until the program prints a pattern and return its first group."""
        return wait_for(lambda: re.search(pattern, "".join(self.lines)), START_SECONDS, lambda: self.lines)[1]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
