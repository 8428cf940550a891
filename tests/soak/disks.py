"""Faults: disks that are full or cannot be written."""

import contextlib
import random
import shutil
from pathlib import Path

import psutil

from tests.soak.mounting import NotHere, mounted, read_only
from tests.soak.subject import Lost, Subject
from utils.core.events import iter_events, read_tail
from utils.runs import Run, Status

SIZE = 24 << 20  # bytes of the small disk; the run writes about a third of it
BLOCK = 1 << 16
MAX_FILE = 1 << 16  # bytes of a file that may still be written; a save needs more
REASONS = ("cannot be written", "are free")  # how a run says that the disk ended it


def disk_full(subject: Subject, rng: random.Random) -> None:
    """Fill the disk during training; the run ends with a message, and resumes once there is space."""
    folder = subject.project.root.with_name(f"small-{rng.randrange(1 << 30)}")
    folder.mkdir()
    with mounted(["-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs"], folder):
        small = Subject(folder / "project")
        try:
            with contextlib.closing(small):
                before = complaints(small.work())
                filler = fill(folder, rng.choice((0, BLOCK, 4 * BLOCK, 16 * BLOCK)))
                expect_message(small, before)
                filler.unlink()
                small.check_and_resume()
        except Exception as error:
            copy = shutil.copytree(small.project.root, folder.with_name(f"{folder.name}-copy"))  # the disk goes away
            raise Lost(f"in {copy}: {type(error).__name__}: {error}") from error


def file_size_limited(subject: Subject, _rng: random.Random) -> None:
    """Limit the size of files, which needs no rights; the run ends with a message, and resumes afterwards."""
    if not hasattr(psutil, "RLIMIT_FSIZE"):
        raise NotHere("this system has no file size limits")
    before = complaints(subject.work())
    subject.processes[0].rlimit(psutil.RLIMIT_FSIZE, (MAX_FILE, MAX_FILE))
    expect_message(subject, before)
    subject.check_and_resume()


def output_read_only(subject: Subject, _rng: random.Random) -> None:
    """Make the run's folder read-only during training; the run ends with a message, and resumes afterwards."""
    run = subject.work()
    before = complaints(run)
    with read_only(run.folder):
        expect_message(subject, before)
    subject.check_and_resume()


def fill(folder: Path, left: int) -> Path:
    """Write a file that leaves this many bytes free."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while (free := shutil.disk_usage(folder).free) > left:
            file.write(bytes(min(BLOCK, free - left)))
    return filler


def expect_message(subject: Subject, before: int) -> None:
    """Check that the run ended and named the disk: in its state or, where that cannot be written, elsewhere."""
    state = subject.wait_for_end()
    if state.status is Status.FAILED and any(reason in state.message for reason in REASONS):
        return
    if state.status is not Status.LOST or complaints(subject.training) == before:
        raise Lost(f"it does not say that the disk is the reason: {state} {read_tail(subject.training.log, 800)}")


def complaints(run: Run) -> int:
    """Count how often a run has named the disk, in its log or in an event of its end."""
    ends = (str(event.get("message")) for event in iter_events(run.events) if event["kind"] == "ended")
    text = "\n".join([run.log.read_text(encoding="utf-8", errors="replace"), *ends])
    return sum(text.count(reason) for reason in REASONS)
