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
LARGEST = 1 << 16  # bytes of a file that may still be written; a save needs more
REASONS = ("cannot be written", "are free")  # how a run says that the disk ended it


def disk_full(subject: Subject, dice: random.Random) -> None:
    """Fill the disk while the run trains; it ends with a sentence, and goes on once there is room."""
    folder = subject.project.root.with_name(f"small-{dice.randrange(1 << 30)}")
    folder.mkdir()
    with mounted(["-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs"], folder):
        small = Subject(folder / "project")
        try:
            with contextlib.closing(small):
                _fill_and_go_on(small, folder, dice.choice((0, BLOCK, 4 * BLOCK, 16 * BLOCK)))
        except Exception as error:
            kept = shutil.copytree(small.project.root, folder.with_name(f"{folder.name}-kept"))  # the disk goes away
            raise Lost(f"in {kept}: {type(error).__name__}: {error}") from error


def _fill_and_go_on(small: Subject, folder: Path, left: int) -> None:
    before = complaints(small.work())
    filler = fill(folder, left)
    ends_with_a_sentence(small, before)
    filler.unlink()
    small.check()
    small.check_goes_on()


def files_too_large(subject: Subject, _dice: random.Random) -> None:
    """Forbid the run to write larger files, which needs no rights; it ends with a sentence, and goes on afterwards."""
    if not hasattr(psutil, "RLIMIT_FSIZE"):
        raise NotHere("this system has no limits of files")
    before = complaints(subject.work())
    subject.family[0].rlimit(psutil.RLIMIT_FSIZE, (LARGEST, LARGEST))
    ends_with_a_sentence(subject, before)
    subject.check()
    subject.check_goes_on()


def output_read_only(subject: Subject, _dice: random.Random) -> None:
    """Forbid writing to the folder of the run while it trains; it ends with a sentence, and goes on afterwards."""
    run = subject.work()
    before = complaints(run)
    with read_only(run.folder):
        ends_with_a_sentence(subject, before)
    subject.check()
    subject.check_goes_on()


def fill(folder: Path, left: int) -> Path:
    """Write a file that leaves this much room on the disk."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while (free := shutil.disk_usage(folder).free) > left:
            file.write(bytes(min(BLOCK, free - left)))
    return filler


def ends_with_a_sentence(subject: Subject, before: int) -> None:
    """See that the disk ended the run and that it said so: in its state or, where that cannot be written, elsewhere."""
    state = subject.ended()
    if state.status is Status.FAILED and any(reason in state.message for reason in REASONS):
        return
    if state.status is not Status.LOST or complaints(subject.training) == before:
        raise Lost(f"it does not say that the disk is the reason: {state} {read_tail(subject.training.log, 800)}")


def complaints(run: Run) -> int:
    """Count how often a run has said in its log, or at its end, that the disk is the reason."""
    ends = (str(event.get("message")) for event in iter_events(run.events) if event["kind"] == "ended")
    told = "\n".join([run.log.read_text(encoding="utf-8", errors="replace"), *ends])
    return sum(told.count(reason) for reason in REASONS)
