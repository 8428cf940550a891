"""What is lost is noticed: each part of an intact run is damaged in turn."""

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
    folder = subject.training.folder / checkpoints.RESUME_FOLDER
    resume_state.save(folder, Snapshot(update, WEIGHTS, {"state": {}, "param_groups": []}))


def emit(subject: Subject, kind: str, *updates: int) -> None:
    with EventLog(subject.training.events) as events:
        for update in updates:
            events.emit(kind, step=update)


@pytest.fixture
def subject(tmp_path: Path) -> Subject:
    """A run that has reported what it saved, and died."""
    subject = Subject(tmp_path / "project")
    subject.run = Run(subject.project.runs / "1-1-train")
    make_folder(subject.run.folder)
    subject.run.write_state(State("train", Status.RUNNING, time.time()))
    subject.run.log.touch()
    for update in SAVED:
        checkpoints.write(subject.run.folder, WEIGHTS, CheckpointInfo(update))
        save(subject, update)
    emit(subject, "checkpoint", *SAVED)
    emit(subject, "saved", *SAVED)
    checkpoints.mark_best(subject.run.folder, SAVED[0])
    return subject


def damage(subject: Subject, file: str) -> None:
    path = subject.training.folder / file
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def model_file(step: int) -> str:
    return f"{checkpoints.FOLDER}/step_{step}/{checkpoints.MODEL}"


def remove(subject: Subject, step: int) -> None:
    checkpoints.delete(checkpoints.find(subject.training.folder, step))


def test_an_intact_run_passes(subject: Subject) -> None:
    subject.check()
    assert subject.saved() == SAVED[-1]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda it: save(it, 2), "update 4 was reported as saved, and the state is of 2"),
        (lambda it: damage(it, f"{checkpoints.RESUME_FOLDER}/{resume_state.WEIGHTS}"), "has changed since"),
        (lambda it: remove(it, 4), "checkpoint 4 was reported and is gone"),
        (lambda it: remove(it, 2), "checkpoint 2 is marked as the best and is gone"),
        (lambda it: damage(it, model_file(2)), "has changed since"),
        (lambda it: (it.training.folder / model_file(4)).unlink(), "is missing"),
        (lambda it: editor.set_text(it.project.dataset, "r-3", "ሰላም።"), "the clips are not what"),
        (lambda it: editor.restore(it.project.dataset, ["r-1"]), "the clips are not what"),
    ],
)
def test_what_is_lost_is_noticed(subject: Subject, spoil: Callable[[Subject], object], message: str) -> None:
    spoil(subject)
    with pytest.raises((Lost, DamagedError), match=message):
        subject.check()


@pytest.mark.parametrize("updates", [(6, 7), (5, 7), (4, 5)])
def test_an_update_missing_or_taken_twice_is_noticed(
    subject: Subject, monkeypatch: pytest.MonkeyPatch, updates: tuple[int, ...]
) -> None:
    emit(subject, "train", 1, 2, 3, 4, 5)  # the last of them was not saved
    monkeypatch.setattr(Subject, "work", lambda it: emit(it, "train", *updates))
    with pytest.raises(Lost, match="after update 4 it took"):
        subject.check_resume()


def test_another_process_with_the_number_of_a_run_is_left_alone(subject: Subject) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        subject.training.write_state(State("train", Status.RUNNING, time.time(), other.pid, "another-boot/1"))
        subject.kill()
        assert other.poll() is None
