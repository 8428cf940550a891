"""The campaign: faults in random order until the time is over, each counted as survived or as a loss."""

import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.soak import disks, faults
from tests.soak.mounting import NotHere
from tests.soak.subject import Subject, wait_for
from utils.core.storage import make_folder

Fault = Callable[[Subject, random.Random], None]

FAULTS: Mapping[str, Fault] = {
    "training killed at a random moment": faults.training_killed,
    "training killed while it starts": faults.training_killed_early,
    "training asked to stop by the system": faults.training_asked_to_stop,
    "page and launcher killed during training": faults.page_killed,
    "clip editor killed": faults.editor_killed,
    "disk full": disks.disk_full,
    "file size limit reached": disks.file_size_limited,
    "output read-only": disks.output_read_only,
    "resume state damaged": faults.state_damaged,
    "resume state and newest checkpoint damaged": faults.state_and_checkpoint_damaged,
    "newest checkpoint damaged": faults.checkpoint_damaged,
    "last event incomplete": faults.event_torn,
    "clock jumped by a year": faults.clock_jumped,
    "two projects, one killed": faults.two_projects,
    "run and project deleted while running": faults.deleted_while_running,
    "recording deleted while running": faults.recording_deleted,
    "run folder removed": faults.run_folder_removed,
    "project deleted and restored": faults.deleted_and_restored,
    "started twice": faults.started_twice,
}


@dataclass
class FaultCount:
    """The outcome of one kind of fault."""

    fault: str
    injected: int = 0
    survived: int = 0  # nothing was lost
    lost: int = 0
    skipped: str = ""  # why it is impossible on this machine; empty when it is possible
    losses: list[str] = field(default_factory=list)

    def lose(self, subject: Subject, error: Exception) -> None:
        self.lost += 1
        self.losses.append(f"{subject.project.root}: {type(error).__name__}: {error}")

    def __str__(self) -> str:
        if self.skipped:
            return f"{self.fault}: skipped, {self.skipped}"
        return "\n  ".join([f"{self.fault}: {self.injected} injected, {self.lost} lost", *self.losses])


def soak(
    folder: Path,
    seconds: float,
    seed: int,
    counts: Sequence[FaultCount],
    possible: Mapping[str, Fault],
    report: Callable[[str], object] = lambda _: None,
) -> None:
    """Inject faults until the time is over; the last one is finished.

    The counts are filled on the way, so that they are complete whatever ends the campaign.
    """
    make_folder(folder)
    deadline = time.monotonic() + seconds
    rng, number = random.Random(seed), 0
    order: list[FaultCount] = []
    subject: Subject | None = None
    try:
        while time.monotonic() < deadline and not all(count.skipped for count in counts):
            order = order or rng.sample(counts, len(counts))
            count = order.pop(0)
            if count.skipped:
                continue
            subject = subject or Subject(folder / f"project-{number}")
            number += 1
            if not _inject(possible[count.fault], subject, seed, count):
                _close(subject, count)
                subject = None  # what is left of it would spoil the next faults
            report(str(count))
    finally:
        if subject is not None:
            _close(subject, count)


def _inject(fault: Fault, subject: Subject, seed: int, count: FaultCount) -> bool:
    """Inject a fault and count it; tell whether the project can be used for the next one."""
    rng = random.Random(f"{seed}/{count.fault}/{count.injected}")  # no fault depends on the others
    try:
        fault(subject, rng)
        _refuse_zombies()
    except NotHere as reason:
        count.skipped = str(reason)
        return True
    except Exception as error:  # noqa: BLE001  # any error is what this campaign looks for
        count.injected += 1
        count.lose(subject, error)
        return False
    count.injected += 1
    count.survived += 1
    return True


def _close(subject: Subject, count: FaultCount) -> None:
    try:
        subject.close()
    except Exception as error:  # noqa: BLE001  # a run that cannot be stopped is a finding too
        count.lose(subject, error)


def _refuse_zombies() -> None:
    children = psutil.Process().children
    wait_for(lambda: not any(map(_is_zombie, children(recursive=True))), lambda: "zombies are left", patience=10.0)


def _is_zombie(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    return False
