"""How many threads the math libraries use, and how they wait, for the page, its runs, the server and commands.

The number never follows what other programs do at the moment: it decides the last digits of sounds and weights.
"""

import contextlib
import math
import os
import sys
from pathlib import Path

THREADS = "OMP_NUM_THREADS"  # of each process; torch, its libraries and those of Whisper read it when they are loaded
# Workers of OpenMP spin between two products. Beside any other busy process, spinning costs most of the speed.
PASSIVE = {"KMP_BLOCKTIME": "0", "GOMP_SPINCOUNT": "0", "OMP_WAIT_POLICY": "PASSIVE"}
ON_APPLE = {"PYTORCH_ENABLE_MPS_FALLBACK": "1"}  # the CPU does what torch lacks for Apple's GPU, instead of an error
QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container: microseconds of processor time, and in how many


def prepare_libraries() -> None:
    """Let idle threads sleep, and use no more than a container may; call it before torch is imported.

    Children inherit it, and what a user has set stays.
    """
    for name, value in {**PASSIVE, **ON_APPLE}.items():
        os.environ.setdefault(name, value)
    if (cores := available_cores()) < _permitted_cores():
        os.environ.setdefault(THREADS, str(cores))


def available_cores() -> int:
    """Return how many cores this process may use, by its affinity and by the quota of its container."""
    return min(_permitted_cores(), _quota())


def threads_each(processes: int) -> int:
    """Return the threads of each of several busy processes: its share of the cores, at most what the user has set."""
    share = available_cores() // processes
    limit = os.environ.get(THREADS, "")
    return max(1, min(share, int(limit)) if limit.isdecimal() else share)


def _permitted_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _quota() -> int:
    """Return how many cores the quota amounts to, rounded up; very many without one."""
    with contextlib.suppress(OSError, ValueError):  # no container, or "max"
        microseconds, period = map(int, QUOTA.read_text(encoding="ascii").split())
        return math.ceil(microseconds / period)
    return sys.maxsize
