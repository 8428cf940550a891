"""Faults: files that no longer hold what was written, and a clock that jumps."""

import dataclasses
import os
import random
import time
from pathlib import Path

from tests.soak.subject import Lost, Subject
from utils import runs
from utils.core.storage import DamagedError
from utils.xtts import checkpoints

YEAR = 365 * 86_400.0


def state_damaged(subject: Subject, dice: random.Random) -> None:
    """Damage the state that the run would go on from; it goes on from its newest checkpoint, and says so."""
    _rest(subject, dice)
    newest = checkpoints.find(subject.training.folder, "newest").step
    spoil(dice.choice(_tensors(subject.training.folder / checkpoints.RESUME_FOLDER)), dice)
    _goes_on_with_a_warning(subject, newest)


def state_and_checkpoint_damaged(subject: Subject, dice: random.Random) -> None:
    """Damage the state and the newest checkpoint; the run goes on from the checkpoint before it, and says so."""
    _rest(subject, dice)
    while len(listed := checkpoints.list_checkpoints(subject.training.folder)) < 2:
        _rest(subject, dice)
    newest, before = listed[0], listed[1]
    spoil(newest.folder / checkpoints.MODEL, dice)
    spoil(dice.choice(_tensors(subject.training.folder / checkpoints.RESUME_FOLDER)), dice)
    _goes_on_with_a_warning(subject, before.step)


def checkpoint_damaged(subject: Subject, dice: random.Random) -> None:
    """Damage the newest checkpoint alone; it is never taken for whole, and the run goes on from its state beside it."""
    _rest(subject, dice)
    newest = checkpoints.find(subject.training.folder, "newest")
    path = newest.folder / checkpoints.MODEL
    kept = path.read_bytes()
    spoil(path, dice)
    try:
        checkpoints.read_state(checkpoints.find(subject.training.folder, newest.step).folder)
    except DamagedError:
        pass
    else:
        raise Lost(f"{newest.folder} is damaged and taken for whole")
    subject.check_goes_on()
    subject.kill()
    if path.exists():  # it may have made room for newer ones
        path.write_bytes(kept)
    subject.check()


def events_torn(subject: Subject, dice: random.Random) -> None:
    """Leave half a line at the end of the events, as a power cut does; what follows it is read."""
    _rest(subject, dice)
    with subject.training.events.open("ab") as file:
        file.write(b'{"time": 1, "kind": "tra'[: dice.randrange(1, 24)])
    subject.check_goes_on()
    subject.kill()
    subject.check()


def clock_jumped(subject: Subject, dice: random.Random) -> None:
    """Let everything of the run be written in a year to come, or long ago, as after a clock that was set."""
    _rest(subject, dice)
    run, jump = subject.training, dice.choice((YEAR, -YEAR))
    state = run.read_state()
    run.write_state(dataclasses.replace(state, created=state.created + jump, heartbeat=state.heartbeat + jump))
    for path in run.folder.rglob("*"):
        os.utime(path, (time.time() + jump, time.time() + jump))
    subject.check()
    subject.check_goes_on()
    state = run.read_state()
    run.write_state(dataclasses.replace(state, heartbeat=state.heartbeat - jump))
    if run.current_state().status not in runs.ACTIVE:  # asked before the run itself says the time again
        raise Lost("a run at work is taken for lost once the clock jumps")
    subject.go_on()
    subject.kill()
    subject.check()


def spoil(path: Path, dice: random.Random) -> None:
    """Turn bits over, cut the end off, or empty a file."""
    content = bytearray(path.read_bytes())
    kind = dice.randrange(3)
    if kind == 0:
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    else:
        del content[dice.randrange(len(content)) if kind == 1 else 0 :]
    path.write_bytes(content)


def _rest(subject: Subject, dice: random.Random) -> None:
    """Train on for a while, then kill."""
    subject.work(dice.randint(2, 5))
    subject.kill()
    subject.check()


def _tensors(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def _goes_on_with_a_warning(subject: Subject, from_update: int) -> None:
    warnings, saves = len(subject.told("warning")), len(subject.told("saved"))
    subject.check_goes_on(from_update)
    subject.until(lambda: len(subject.told("saved")) > saves, "it does not save")
    told = [str(event["message"]) for event in subject.told("warning")[warnings:]]
    if not any(f"checkpoint of update {from_update}." in sentence for sentence in told):
        raise Lost(f"it did not say that it goes on from checkpoint {from_update}: {told}")
    subject.kill()
    subject.check()
