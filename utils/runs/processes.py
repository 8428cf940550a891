"""Which process is meant by a number, whether it still lives, and how to end it with its children."""

import platform
import sys
from pathlib import Path

import psutil

GONE = ""


def identity(pid: int) -> str:
    """Return what tells this process from any later one with the same number; empty when it is gone or a zombie.

    Linux counts the start in ticks since this boot, which no change of the clock can move.
    """
    if sys.platform == "linux":
        return _linux_identity(pid)
    try:
        process = psutil.Process(pid)
        return GONE if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return GONE


def _linux_identity(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return GONE
    state, started = words[0], words[19]  # fields 3 and 22 of proc(5), counted from behind the name
    return GONE if state in "ZX" else f"{boot}/{started}"


def machine() -> str:
    """Name this machine, because process numbers mean nothing on another."""
    return platform.node()


def is_alive(pid: int, recorded: str) -> bool:
    """Tell whether the very process that was recorded still lives."""
    return bool(recorded) and identity(pid) == recorded


def end_tree(pid: int, recorded: str, *, grace: float = 5.0) -> bool:
    """Ask a process and its children to end, kill those that have not after ``grace`` seconds; never touch another's.

    Returns:
        Whether the recorded process was alive and has been ended.
    """
    try:
        parent = psutil.Process(pid)  # before the question, so that what is asked about is what will be signalled
        if not is_alive(pid, recorded):
            return False
        family = [*parent.children(recursive=True), parent]
    except (psutil.NoSuchProcess, ValueError, OverflowError):  # gone, or no number that a process can have
        return False
    _signal(family, "terminate")
    _, left = psutil.wait_procs(family, timeout=grace)
    _signal(left, "kill")
    psutil.wait_procs(left, timeout=grace)
    return True


def _signal(family: list[psutil.Process], action: str) -> None:
    for process in family:
        try:
            getattr(process, action)()  # psutil checks the start time again, so a reused number is safe
        except psutil.NoSuchProcess:
            continue
