"""The campaign: faults in an order of chance until the time is over, each counted as survived or as a loss."""

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tests.soak import damage, disks, kills, use
from tests.soak.mounting import NotHere
from tests.soak.subject import Lost, Subject
from utils.core.storage import make_folder

Fault = Callable[[Subject, random.Random], None]

FAULTS: Mapping[str, Fault] = {
    "training killed at a random moment": kills.training_killed,
    "training killed while it starts": kills.training_killed_early,
    "training asked to end by the system": kills.training_asked_to_end,
    "page and starter killed while it trains": kills.page_killed,
    "editor of clips killed": kills.editor_killed,
    "disk full": disks.disk_full,
    "files may grow no larger": disks.files_too_large,
    "output read-only": disks.output_read_only,
    "state to go on from damaged": damage.state_damaged,
    "state and newest checkpoint damaged": damage.state_and_checkpoint_damaged,
    "newest checkpoint damaged": damage.checkpoint_damaged,
    "events torn": damage.events_torn,
    "clock jumped by a year": damage.clock_jumped,
    "two projects, one killed": use.two_projects,
    "run and project deleted at work": use.deleted_at_work,
    "recording deleted at work": use.recording_deleted,
    "folder of the run taken away": use.folder_taken_away,
    "project deleted and restored": use.deleted_and_restored,
    "started twice": use.started_twice,
}


@dataclass
class Count:
    """What came of one kind of fault.

    Attributes:
        fault: What was done.
        injected: How often.
        survived: How often nothing was lost.
        lost: How often something was.
        skipped: Why it cannot be done on this machine; empty when it can.
        losses: What was lost, in sentences.
    """

    fault: str
    injected: int = 0
    survived: int = 0
    lost: int = 0
    skipped: str = ""
    losses: list[str] = field(default_factory=list)

    def lose(self, subject: Subject, error: Exception) -> None:
        """Count a loss."""
        self.lost += 1
        self.losses.append(f"{subject.project.root}: {type(error).__name__}: {error}")


def soak(
    folder: Path,
    seconds: float,
    seed: int,
    counts: Sequence[Count],
    faults: Mapping[str, Fault],
    tell: Callable[[str], object] = lambda _: None,
) -> None:
    """Do faults to a training until the time is over; the one that is being done then is done to its end.

    Args:
        folder: For the projects; nothing may lie there.
        seconds: How long.
        seed: Of every chance.
        counts: What is to be done; filled on the way, so that they are there whatever ends the campaign.
        faults: How it is done.
        tell: Hears what came of each.
    """
    make_folder(folder)
    deadline = time.monotonic() + seconds
    subject: Subject | None = None
    try:
        for number, count in enumerate(_order(counts, seed)):
            if time.monotonic() >= deadline or all(one.skipped for one in counts):
                break
            if not count.skipped:
                subject = subject or Subject(folder / f"project-{number}")
                if not _inject(faults[count.fault], subject, seed, count):
                    _close(subject, count)
                    subject = None  # what is left of it would spoil the next ones
                tell(_sentence(count))
    finally:
        if subject is not None:
            _close(subject, count)


def _order(counts: Sequence[Count], seed: int) -> Iterator[Count]:
    """Give every fault once, in an order of chance, and so on without end."""
    dice = random.Random(seed)  # chance that can be repeated, no secret
    while True:
        yield from dice.sample(counts, len(counts))


def _inject(fault: Fault, subject: Subject, seed: int, count: Count) -> bool:
    """Do a fault and count it; tell whether the project can be used for the next one."""
    dice = random.Random(f"{seed}/{count.fault}/{count.injected}")  # its own: none depends on the others
    try:
        fault(subject, dice)
        _refuse_zombies()
    except NotHere as reason:
        count.skipped = str(reason)
        return True
    except Exception as error:  # noqa: BLE001  # whatever a fault leads to is what this campaign looks for
        count.injected += 1
        count.lose(subject, error)
        return False
    count.injected += 1
    count.survived += 1
    return True


def _close(subject: Subject, count: Count) -> None:
    try:
        subject.close()
    except Exception as error:  # noqa: BLE001  # a run that cannot be ended is a finding too
        count.lose(subject, error)


def _refuse_zombies() -> None:
    deadline = time.monotonic() + 10.0
    while zombies := [child for child in psutil.Process().children(recursive=True) if _is_zombie(child)]:
        if time.monotonic() > deadline:
            raise Lost(f"zombies are left: {zombies}")
        time.sleep(0.1)


def _is_zombie(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.NoSuchProcess):
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    return False


def _sentence(count: Count) -> str:
    if count.skipped:
        return f"{count.fault}: skipped, {count.skipped}"
    return "\n  ".join([f"{count.fault}: {count.injected} injected, {count.lost} lost", *count.losses])
