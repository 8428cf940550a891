"""A process is known by more than its number, and is ended with its children."""

import subprocess
import sys
import time

import psutil
import pytest

from utils.core.processes import end_tree, identity, is_alive

SLEEPER = "import time; time.sleep(60)"
PARENT = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SLEEPER!r}]); print(flush=True); {SLEEPER}"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); {SLEEPER}"


def start(code: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    if code is not SLEEPER:
        assert process.stdout
        process.stdout.readline()
    return process


def test_a_reused_number_is_never_signalled() -> None:
    process = start(SLEEPER)
    assert is_alive(process.pid, identity(process.pid))
    assert not is_alive(process.pid, "")
    assert not end_tree(process.pid, "another-boot/1", grace=0.1)
    assert process.poll() is None
    recorded = identity(process.pid)
    process.kill()
    while psutil.Process(process.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    assert not is_alive(process.pid, recorded)
    process.wait()
    assert identity(process.pid) == ""


@pytest.mark.parametrize("code", [SLEEPER, PARENT, STUBBORN], ids=["plain", "with a child", "ignoring SIGTERM"])
def test_a_process_is_ended_with_its_children(code: str) -> None:
    process = start(code)
    family = [psutil.Process(process.pid), *psutil.Process(process.pid).children()]
    assert end_tree(process.pid, identity(process.pid), grace=0.5)
    process.wait()
    assert [member for member in family if member.is_running() and member.status() != psutil.STATUS_ZOMBIE] == []
