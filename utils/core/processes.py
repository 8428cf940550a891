"""Child processes: start them, read what they print, tell whether they are alive, end them with their children.

Every child starts in ``spawn``; the functions below it cover the usual cases. ``start_detached`` is for a run that
outlives the page, ``run_to_end`` for a command that can be stopped, ``query`` for a single answer.
"""

import contextlib
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, TypeVar

import psutil

from utils.core.errors import ChildError, NoAnswerError, ProcessNotStartedError
from utils.core.paths import ROOT
from utils.core.storage import storage_errors

T = TypeVar("T")
POLL_SECONDS = 0.2
ENDING_SECONDS = 5.0  # that a process has to end after a signal
UNBUFFERED = {"PYTHONUNBUFFERED": "1"}  # each line reaches the output file at once


def spawn(
    arguments: Sequence[str],
    *,
    stdin: int | IO[bytes] = subprocess.DEVNULL,
    stdout: int | IO[bytes] | None = None,
    stderr: int | IO[bytes] | None = None,
    env: Mapping[str, str] | None = None,
    new_session: bool = False,
) -> subprocess.Popen[bytes]:
    """Start ``python <arguments>`` in the program's folder.

    The other arguments are those of ``subprocess.Popen``; ``env`` is added to this process's environment, and Ctrl-C
    in this terminal does not reach a new session.
    """
    flags = 0
    if sys.platform == "win32":
        flags = subprocess.CREATE_NO_WINDOW | (subprocess.CREATE_NEW_PROCESS_GROUP if new_session else 0)
    try:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONUTF8": "1", **(env or {})},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=new_session,
            creationflags=flags,
        )
    except OSError as error:
        raise ProcessNotStartedError(error.strerror or str(error)) from error


def start_detached(arguments: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
    """Start a child that outlives this process and appends everything it prints to a file."""
    with storage_errors(log):
        output = log.open("ab")
    with output:
        return spawn(arguments, stdout=output, stderr=subprocess.STDOUT, env=UNBUFFERED, new_session=True)


def run_to_end(arguments: Sequence[str], check: Callable[[], object]) -> None:
    """Run a child to its end. ``check`` is called several times a second; what it raises ends the child.

    If the child fails, its last line is the message of the ChildError.
    """
    with tempfile.TemporaryFile() as output:  # a full pipe would block the child until somebody reads it
        process = spawn(arguments, stdout=output, stderr=subprocess.STDOUT, env=UNBUFFERED)
        try:
            while process.poll() is None:
                check()
                time.sleep(POLL_SECONDS)
        finally:
            process.kill()
            process.wait()
        output.seek(0)
        lines = output.read().decode("utf-8", "replace").split("\n")
    if process.returncode:
        last = next((line.rstrip() for line in reversed(lines) if line.strip()), "")
        raise ChildError(last or f"exit code {process.returncode}")


def query(arguments: Sequence[str], parse: Callable[[str], T], *, timeout: float, text: str = "") -> T:
    """Run a child to its end, with a text on its standard input, and parse what it prints; timeout in seconds."""
    pipe = subprocess.PIPE
    with spawn(arguments, stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            output, errors = process.communicate(text.encode(), timeout)
        except subprocess.TimeoutExpired as error:
            raise NoAnswerError(timeout) from error
        finally:
            process.kill()
    try:
        return parse(output.decode("utf-8", "replace"))
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        reason = (errors.decode("utf-8", "replace").strip().splitlines() or ["no readable output"])[-1]
        raise ChildError(reason) from error


def identity(pid: int) -> str:
    """Return what distinguishes a process from a later one with the same id; empty if it is gone or a zombie.

    On Linux this is the boot and the start time in ticks, which does not depend on the clock.
    """
    if sys.platform == "linux":
        try:
            words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            return ""
        state, started = words[0], words[19]  # fields 3 and 22 of proc(5)
        return "" if state in "ZX" else f"{boot}/{started}"
    try:
        process = psutil.Process(pid)
        return "" if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return ""


def machine() -> str:
    """Return the name of this machine; a process id is meaningless on another."""
    return platform.node()


def is_alive(pid: int, recorded: str) -> bool:
    return bool(recorded) and identity(pid) == recorded


def end_tree(pid: int, recorded: str, *, grace: float = ENDING_SECONDS) -> bool:
    """End a recorded process, if it is alive, and its children; kill what is left after ``grace`` seconds."""
    try:
        parent = psutil.Process(pid)  # first, so that the process checked is the one signalled
        if not is_alive(pid, recorded):
            return False
        family = [*parent.children(recursive=True), parent]
    except (psutil.NoSuchProcess, ValueError, OverflowError):  # gone, or an impossible process id
        return False
    for action, seconds in ((psutil.Process.terminate, grace), (psutil.Process.kill, ENDING_SECONDS)):
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                action(process)  # psutil checks the start time again, so a reused id is safe
        _, family = psutil.wait_procs(family, timeout=seconds)
    return True
