"""What is lost is noticed: each part of a whole run is spoiled in turn, as no fault of the campaign could yet do it."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.soak.subject import Lost, Subject
from utils.core.events import EventLog
from utils.core.storage import DamagedError, make_folder
from utils.dataset import editor
from utils.runs import Run, State, Status
from utils.training import resume_state
from utils.training.resume_state import Snapshot
from utils.xtts import checkpoints
from utils.xtts.checkpoints import CheckpointInfo

SAVED = (2, 4)  # updates after which a checkpoint and the state were written
WEIGHTS = {"gpt.a": torch.ones(8, 4)}


def save(subject: Subject, update: int) -> None:
    resume_state.save(
        subject.training.folder / checkpoints.RESUME_FOLDER,
        Snapshot(update, WEIGHTS, {"state": {}, "param_groups": []}),
    )


def take(subject: Subject, *updates: int) -> None:
    with EventLog(subject.training.events) as events:
        for update in updates:
            events.emit("train", step=update)


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    """A run that has announced what it saved, and died."""
    found = Subject(tmp_path / "project")
    found.run = Run(found.project.runs / "1-1-train")
    make_folder(found.run.folder)
    found.run.write_state(State("train", Status.RUNNING, time.time()))
    found.run.log.touch()
    for update in SAVED:
        checkpoints.write(found.run.folder, WEIGHTS, CheckpointInfo(update))
        save(found, update)
        with EventLog(found.run.events) as events:
            events.emit("checkpoint", step=update)
            events.emit("saved", step=update)
    checkpoints.mark_best(found.run.folder, SAVED[0])
    return found


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def remove_checkpoint(subject: Subject, step: int) -> None:
    checkpoints.delete(checkpoints.find(subject.training.folder, step))


def test_a_whole_run_is_whole(subject: Subject) -> None:
    subject.check()
    assert subject.saved() == SAVED[-1]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda one: save(one, 2), "update 4 was announced as saved, and the state is of 2"),
        (
            lambda one: damage(one.training.folder / checkpoints.RESUME_FOLDER / resume_state.WEIGHTS),
            "has changed since",
        ),
        (lambda one: remove_checkpoint(one, 4), "checkpoint 4 was announced and is gone"),
        (lambda one: remove_checkpoint(one, 2), "checkpoint 2 is marked as the best and is gone"),
        (
            lambda one: damage(checkpoints.checkpoint_folder(one.training.folder, 2) / checkpoints.MODEL),
            "has changed since",
        ),
        (
            lambda one: (checkpoints.checkpoint_folder(one.training.folder, 4) / checkpoints.MODEL).unlink(),
            "is missing",
        ),
        (lambda one: editor.set_text(one.project.dataset, "r-3", "ሰላም።"), "the clips are not what"),
        (lambda one: editor.restore(one.project.dataset, ["r-1"]), "the clips are not what"),
    ],
)
def test_what_is_lost_is_noticed(subject: Subject, spoil: Callable[[Subject], object], said: str) -> None:
    spoil(subject)
    with pytest.raises((Lost, DamagedError), match=said):
        subject.check()


@pytest.mark.parametrize("updates", [(6, 7), (5, 7), (4, 5)])
def test_an_update_missing_or_taken_twice_is_noticed(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, updates: tuple[int, ...]
) -> None:
    take(subject, 1, 2, 3, 4, 5)  # the last of them was not saved
    monkeypatch.setattr(Subject, "work", lambda one: take(one, *updates))
    with pytest.raises(Lost, match="after update 4 it took"):
        subject.check_goes_on()


def test_another_process_with_the_number_of_a_run_is_left_alone(subject: Subject) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        subject.training.write_state(State("train", Status.RUNNING, time.time(), other.pid, "another-boot/1"))
        subject.kill()
        assert other.poll() is None
