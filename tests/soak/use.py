"""Faults: what is deleted while somebody uses it, and two projects that work at once."""

import contextlib
import random
import shutil
from collections.abc import Callable

from tests.soak.subject import Lost, Subject
from utils import runs
from utils.core.errors import RunBusyError
from utils.workspace import projects


def deleted_at_work(subject: Subject, _dice: random.Random) -> None:
    """Delete, rename and copy the run and the project while it trains; all of it is refused."""
    run, output = subject.work(), subject.project.root.parent
    _refused(lambda: runs.delete(run), "deleting the run")
    _refused(lambda: projects.delete(subject.project, output), "deleting the project")
    _refused(lambda: projects.rename(subject.project, "other", output), "renaming the project")
    _refused(lambda: projects.duplicate(subject.project, "copy", output), "copying the project")
    subject.go_on()
    subject.kill()
    subject.check()


def recording_deleted(subject: Subject, dice: random.Random) -> None:
    """Take a clip's sound away while the run trains, and go on without it; the features are there."""
    subject.work()
    path = subject.project.dataset / dice.choice(list(subject.clips.values())).audio
    kept = path.read_bytes()
    path.unlink()
    try:
        subject.go_on()
        subject.kill()
        subject.check()
        subject.check_goes_on()
    finally:
        path.write_bytes(kept)


def folder_taken_away(subject: Subject, _dice: random.Random) -> None:
    """Delete the folder of a run by hand while it trains; its process ends, and the project is whole."""
    run = subject.work()
    shutil.rmtree(run.folder, ignore_errors=True)
    subject.expect_gone()
    shutil.rmtree(run.folder, ignore_errors=True)  # what it wrote in its last moment
    subject.run = None
    subject.check_clips()
    subject.work()


def deleted_and_restored(subject: Subject, _dice: random.Random) -> None:
    """Delete the project at rest and bring it back; it is whole and goes on."""
    subject.work()
    subject.kill()
    deleted = projects.delete(subject.project, subject.project.root.parent)
    projects.restore(deleted.id, subject.project.root.parent)
    subject.check()
    subject.check_goes_on()


def two_projects(subject: Subject, dice: random.Random) -> None:
    """Train two projects at once and kill one of them; the other goes on, and both are whole."""
    other = Subject(subject.project.root.with_name(f"other-{dice.randrange(1 << 30)}"))
    with contextlib.closing(other):
        subject.work()
        other.work()
        subject.kill()
        other.go_on()
        other.kill()
        for one in (subject, other):
            one.check()
            one.check_goes_on()
    shutil.rmtree(other.project.root)


def started_twice(subject: Subject, _dice: random.Random) -> None:
    """Start and resume a training that is at work; nothing is started besides it."""
    run = subject.work()
    pid = run.read_state().pid
    if runs.start("train", subject.config, subject.project) != run or runs.resume(run).read_state().pid != pid:
        raise Lost("a second training was started")
    subject.go_on()


def _refused(action: Callable[[], object], what: str) -> None:
    try:
        action()
    except RunBusyError:
        return
    raise Lost(f"{what} was not refused while it is at work")
