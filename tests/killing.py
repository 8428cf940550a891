"""kill -9 at every touch of the disk: a fork of this process kills itself at the n-th one."""

import io
import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from utils.core.paths import ROOT

TOUCHES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree")
COUNT = "points"  # a file that holds how often undisturbed work touched the disk
Work = Callable[[Path], object]


class Killer:
    """Kills this process when it touches a folder for the n-th time: in the middle, where it is a write."""

    def __init__(self, folder: Path, kill_at: int) -> None:
        self.folder, self.kill_at, self.touched = str(folder), kill_at, 0
        self.open, self.sync, self.connect = io.open, os.fsync, sqlite3.connect

    def is_due(self) -> bool:
        self.touched += 1
        return self.touched == self.kill_at

    def touch(self, *_: object) -> None:
        if self.is_due():
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in TOUCHES and isinstance(arguments[0], str | Path):
            path = str(arguments[0])
            if path.startswith(self.folder) or not Path(path).is_absolute():  # rmtree names files from their folder
                self.touch()

    def open_file(self, path: Any, mode: str = "r", buffering: int = -1, *rest: Any, **options: Any) -> Any:
        if (mode, buffering) != ("wb", 0):
            return self.open(path, mode, buffering, *rest, **options)
        return HalfWriting(path, self)

    def flush(self, descriptor: int) -> None:
        self.touch()
        self.sync(descriptor)

    def connected(self, *arguments: Any, **more: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = self.connect(*arguments, **more)
        connection.set_trace_callback(self.touch)  # before each statement
        return connection


class HalfWriting(io.FileIO):
    """A file whose writer may die in the middle of a write."""

    def __init__(self, path: Path, killer: Killer) -> None:
        super().__init__(path, "w")
        self.killer = killer

    def write(self, content: Any) -> int:
        if self.killer.is_due():
            super().write(content[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return super().write(content) or 0


def rerun_alone(request: pytest.FixtureRequest) -> bool:
    """Run a test of forks in a process of its own; return whether that was done.

    Other tests leave threads and open libraries in this worker, and a fork of it may crash (seen twice in CI).
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return False
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    words = ["-m", "pytest", "-n", "0", "-q", "-m", "slow or not slow", request.node.nodeid]
    ended = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout
    return True


def run_until_kill(folder: Path, work: Work, kill_at: int) -> None:
    torch.set_num_threads(1)  # the threads of the parent did not come along
    killer = Killer(folder, kill_at)
    sys.addaudithook(killer.watch)
    io.open = killer.open_file  # type: ignore[assignment]  # this process ends here
    os.fsync = killer.flush  # type: ignore[assignment]
    sqlite3.connect = killer.connected  # type: ignore[assignment]
    work(folder)
    (folder / COUNT).write_text(str(killer.touched))


def exit_code_of_child(folder: Path, work: Work, kill_at: int) -> int | None:
    child = multiprocessing.get_context("fork").Process(target=run_until_kill, args=(folder, work, kill_at))
    child.start()
    child.join()
    return child.exitcode


def kill_everywhere(folder: Path, prepare: Work, work: Work, minimum: int = 30) -> Iterator[Path]:
    """Prepare a folder and kill the work on it at each touch of the disk, one after the other; yield what is left."""
    counting = folder / "undisturbed"
    prepare(counting)
    assert exit_code_of_child(counting, work, 0) == 0
    points = int((counting / COUNT).read_text())
    assert points > minimum
    for point in range(1, points + 1):
        killed = folder / f"killed-{point}"
        prepare(killed)
        code = exit_code_of_child(killed, work, point)
        assert code == -signal.SIGKILL, f"at touch {point} it ended with {code}"
        yield killed
