"""Faults are injected into a real training: killed processes, full and read-only disks, a clock that jumps.

Nothing that was saved may be lost. One fault is injected by default; ``SOAK_ROUNDS=2`` injects each of them twice, and
``SOAK_SEED`` changes their moments and choices.
"""

import contextlib
import io
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tests.soak.mounting import BLOCK, NotHere, fill, mounted
from tests.soak.subject import Lost, Subject
from tests.waiting import wait_for
from tests.worded import worded
from utils.core.errors import StorageError
from utils.core.events import iter_events, read_tail
from utils.core.facts import error_from_json
from utils.core.paths import ROOT
from utils.core.wording import explain
from utils.studio import runs
from utils.studio.job import Job
from utils.studio.run_folder import MAX_STATE, Run
from utils.studio.run_state import State

YEAR = 365 * 86_400.0
SMALL_DISK = 24 << 20  # bytes; the run writes about a third of it
MAX_FILE = 1 << 16  # bytes of a file that may still be written; a save needs more
DISK_REASONS = ("cannot be written", "are free")  # how a run says that the disk ended it

Fault = Callable[[Subject, random.Random], None]


def training_killed(subject: Subject, rng: random.Random) -> None:
    """Kill the training at a random moment, possibly during a save."""
    time.sleep(rng.uniform(0, 1.5))
    subject.kill()


def training_killed_early(subject: Subject, rng: random.Random) -> None:
    """Kill the training while it starts or resumes, before its first update."""
    subject.kill()
    count = len(subject.events("started"))
    runs.resume(subject.training)
    subject.wait_until(lambda: len(subject.events("started")) > count, "it does not start")
    time.sleep(rng.uniform(0, 3))
    subject.kill()


def training_asked_to_stop(subject: Subject, rng: random.Random) -> None:
    """Send the signal that a system sends at its shutdown; the run saves first."""
    time.sleep(rng.uniform(0, 1))
    last = subject.steps("train")[-1]
    subject.processes[0].terminate()
    if (state := subject.wait_for_end()).status != "stopped":
        raise Lost(f"it was asked to stop and is {state.status}: {state.message}")
    if subject.saved() < last:
        raise Lost("it ended without saving")


def disk_full(subject: Subject, rng: random.Random) -> None:
    """Fill the disk during training; the run ends with a message, and resumes once there is space."""
    folder = subject.project.root.with_name(f"small-{rng.randrange(1 << 30)}")
    folder.mkdir()
    with mounted(["-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs"], folder):
        small = Subject(folder / "project")
        try:
            with contextlib.closing(small):
                before = complaints(small.work())
                filler = fill(folder, rng.choice((0, BLOCK, 4 * BLOCK, 16 * BLOCK)))
                _expect_message(small, before)
                filler.unlink()
                small.check()
                small.check_resume()
        except Exception as error:
            copy = shutil.copytree(small.project.root, folder.with_name(f"{folder.name}-copy"))  # the disk goes away
            raise Lost(f"in {copy}: {type(error).__name__}: {error}") from error


def file_size_limited(subject: Subject, _rng: random.Random) -> None:
    """Limit the size of files, which needs no rights; the run ends with a message, and resumes afterwards."""
    if not hasattr(psutil, "RLIMIT_FSIZE"):
        raise NotHere("this system has no file size limits")
    before = complaints(subject.training)
    subject.processes[0].rlimit(psutil.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
    _expect_message(subject, before)


def output_read_only(subject: Subject, _rng: random.Random) -> None:
    """Make the project read-only during training; the run ends with a message, and resumes once it may write."""
    before, folder = complaints(subject.training), subject.project.root
    with mounted(["--bind", "-o", "ro", str(folder)], folder):
        _expect_message(subject, before)


def _expect_message(subject: Subject, before: int) -> None:
    """Check that the run ended and named the disk: in its state or, where that cannot be written, elsewhere."""
    state = subject.wait_for_end()
    if state.status == "failed" and any(reason in state.reason() for reason in DISK_REASONS):
        return
    if state.status != "lost" or complaints(subject.training) == before:
        raise Lost(f"it does not say that the disk is the reason: {state} {read_tail(subject.training.log, 800)}")


def complaints(run: Run) -> int:
    """Count how often a run has named the disk, in its log or in an event of its end."""
    errors = (event.get("error") for event in iter_events(run.events) if event["kind"] == "ended")
    ends = (explain(error_from_json(error)) for error in errors if isinstance(error, dict))
    text = "\n".join([run.log.read_text(encoding="utf-8", errors="replace"), *ends])
    return sum(text.count(reason) for reason in DISK_REASONS)


def clock_jumped(subject: Subject, rng: random.Random) -> None:
    """Move every time of the run by a year, as after a clock that was set."""
    subject.kill()
    run, jump = subject.training, rng.choice((YEAR, -YEAR))
    state = run.read_state()
    run.write_state(replace(state, created=state.created + jump, heartbeat=state.heartbeat + jump))
    for path in run.folder.rglob("*"):
        os.utime(path, (time.time() + jump, time.time() + jump))
    subject.check_resume()
    state = run.read_state()
    run.write_state(replace(state, heartbeat=state.heartbeat - jump))
    if run.current_state().status not in runs.ACTIVE:  # before its next heartbeat
        raise Lost("an active run counts as lost once the clock jumps")
    subject.advance()


FAULTS: tuple[Fault, ...] = (
    training_killed,
    training_killed_early,
    training_asked_to_stop,
    disk_full,
    file_size_limited,
    output_read_only,
    clock_jumped,
)
ROUNDS, SEED = int(os.environ.get("SOAK_ROUNDS", "0")), os.environ.get("SOAK_SEED", "3")
CAMPAIGN = [(fault, number) for number in range(ROUNDS) for fault in FAULTS] or [(training_asked_to_stop, 0)]


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("fault", "number"), CAMPAIGN, ids=[f"{fault.__name__}-{number}" for fault, number in CAMPAIGN]
)
def test_nothing_is_lost(fault: Fault, number: int, tmp_path: Path) -> None:
    rng = random.Random(f"{SEED}/{fault.__name__}/{number}")
    with contextlib.closing(Subject(tmp_path / "project")) as subject:
        subject.work(rng.randint(2, 5))
        try:
            fault(subject, rng)
        except NotHere as reason:
            pytest.skip(str(reason))
        subject.kill()
        subject.check()
        subject.check_resume()
    wait_for(lambda: not has_zombies(), 10)


def has_zombies() -> bool:
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() == psutil.STATUS_ZOMBIE:
                return True
    return False


@pytest.mark.slow
def test_a_user_without_a_home_can_speak(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    reading = ["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]  # of Python and of this checkout
    other = ["setpriv", "--reuid", "54321", "--regid", "54321", "--clear-groups", *reading, "env", "-i"]
    if not shutil.which("setpriv") or subprocess.run([*other, "true"], check=False, capture_output=True).returncode:
        pytest.skip("no right to become another user")
    speak = [sys.executable, "-B", "-m", "utils", "speak", "ሰላም", "--model", "tiny", "--out", str(tmp_path / "a.wav")]
    spoken = subprocess.run([*other, *speak], cwd=ROOT, check=False, capture_output=True, text=True)
    assert (spoken.returncode, "Traceback" in spoken.stderr) == (0, False), spoken.stderr
    assert (tmp_path / "a.wav").stat().st_uid == 54321


@pytest.mark.parametrize("message", ["The disk is full.", "ዲስኩ ሞልቷል።" * 1000])
def test_a_run_reports_its_end_on_a_full_disk(small_disk: Path, message: str) -> None:
    run = Run(small_disk / "1-1-train")
    run.folder.mkdir()
    run.write_state(State("train", "starting", time.time()))
    log = io.TextIOWrapper(run.log.open("wb", buffering=0), write_through=True)

    def fail() -> None:
        with log, redirect_stdout(log), redirect_stderr(log), Job(run):
            fill(small_disk, 0)
            raise worded(StorageError, message)

    with pytest.raises(StorageError):
        fail()
    state = run.current_state()
    assert (state.status, run.state_file.stat().st_size <= MAX_STATE) == ("failed", True)
