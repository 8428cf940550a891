"""Faults: disks that are full or cannot be written."""

import contextlib
import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil

from utils.errors import RunError
from utils.runs import Status
from utils.soak.subject import Lost, Subject

SIZE = 24 << 20  # bytes of the small disk; the run writes about a third of it
BLOCK = 1 << 16
LARGEST = 1 << 16  # bytes of a file that may still be written; a save needs more


class NotHere(RunError):  # noqa: N818  # a reason, not an error
    """This fault cannot be made on this machine."""


def disk_full(subject: Subject, dice: random.Random) -> None:
    """Fill the disk while the run trains; it ends with a sentence, and goes on once there is room."""
    folder = subject.project.root.with_name(f"small-{dice.randrange(1 << 30)}")
    folder.mkdir()
    with mounted(["-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs"], folder):
        small = Subject(folder / "project")
        try:
            small.work()
            filler = fill(folder, dice.choice((0, BLOCK, 4 * BLOCK, 16 * BLOCK)))
            _ends_with_a_sentence(small)
            filler.unlink()
            small.check()
            small.check_goes_on(small.saved())
        finally:
            small.close()


def files_too_large(subject: Subject, _dice: random.Random) -> None:
    """Forbid the run to write larger files, which needs no rights; it ends with a sentence, and goes on afterwards."""
    if not hasattr(psutil, "RLIMIT_FSIZE"):
        raise NotHere("this system has no limits of files")
    subject.work()
    process = psutil.Process(subject.training.read_state().pid)
    process.rlimit(psutil.RLIMIT_FSIZE, (LARGEST, LARGEST))
    _ends_with_a_sentence(subject)
    subject.check()
    subject.check_goes_on(subject.saved())


def output_read_only(subject: Subject, _dice: random.Random) -> None:
    """Forbid writing to the folder of the run while it trains; it ends with a sentence, and goes on afterwards."""
    folder = subject.work().folder
    with read_only(folder):
        _ends_with_a_sentence(subject, is_told=False)
    subject.check()
    subject.check_goes_on(subject.saved())


def fill(folder: Path, left: int) -> Path:
    """Write a file that leaves this much room on the disk."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while (free := shutil.disk_usage(folder).free) > left:
            file.write(bytes(min(BLOCK, free - left)))
    return filler


@contextlib.contextmanager
def mounted(words: list[str], folder: Path) -> Iterator[None]:
    """Mount something on a folder for a while; needs the right to."""
    mount(words, folder)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)  # noqa: S607


def mount(words: list[str], folder: Path) -> None:
    """Mount once; needs the right to."""
    if not shutil.which("mount") or subprocess.run(["mount", *words, str(folder)], check=False).returncode:  # noqa: S607
        raise NotHere("no right to mount a disk here")


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Make a folder read-only for a while, for the superuser too."""
    if os.name == "nt":
        raise NotHere("folders are made read-only in another way here")
    if os.geteuid():
        folder.chmod(0o555)
        try:
            yield
        finally:
            folder.chmod(0o755)
        return
    beside = folder.with_name(f".{folder.name}.read-only")  # made so before it takes the place: later it may be busy
    beside.mkdir()
    with mounted(["--bind", str(folder)], beside):
        mount(["-o", "remount,bind,ro"], beside)
        with mounted(["--bind", str(beside)], folder):
            yield
    beside.rmdir()


def _ends_with_a_sentence(subject: Subject, *, is_told: bool = True) -> None:
    state = subject.ended()
    told = [str(event.get("message")) for event in subject.told("ended")[-1:]]
    if state.status is Status.FAILED and "cannot be written" not in state.message and "are free" not in state.message:
        raise Lost(f"it does not say that the disk is the reason: {state.message}")
    if is_told and state.status is Status.LOST and not told:
        log = subject.training.log.read_text(encoding="utf-8", errors="replace")
        if "cannot be written" not in log and "are free" not in log:
            raise Lost(f"it ended without a word: {log[-800:]}")
