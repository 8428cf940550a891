"""What is lost is noticed: each part of an intact run is damaged in turn."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.soak.subject import Lost, Subject
from utils.core.events import EventLog
from utils.core.folders import DamagedError
from utils.core.storage import make_folder
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
    subject.check()
    spoil(subject)
    with pytest.raises((Lost, DamagedError), match=message):
        subject.check()
