"""What the page alone reads: the story of a run, and the takes of a project, damaged in every way."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.refusals import is_refused
from tests.soak.mutations import mutant
from utils.core.events import EventLog
from utils.core.paths import Project
from utils.runs import Run
from utils.ui.tabs.training.render import ComparedRun, comparison_table, read_settings
from utils.ui.tabs.training.run_history import HistoryCache
from utils.workspace import takes

INPUTS = 100
READING = {"written": "a", "normalised": "a", "phones": "a", "read": "a", "tokens": ["a"], "ids": [1], "unknown": []}
TAKE = {
    "format": 1,
    "kind": "speech",
    "text": "a",
    "model": "tiny",
    "voice": "own",
    "settings": {},
    "pieces": [{"reading": READING, "seed": 1, "flags": ["fast"], "start": 0.0, "seconds": 1.5, "pause": 0.1}],
    "notes": ["a"],
    "took": 1.0,
    "seconds": 1.5,
    "made": 1.7e9,
    "name": "",
    "unfinished": False,
}


def story(path: Path) -> object:
    """Tell of a run, as the training tab does."""
    run = Run(path.parent)
    history = HistoryCache().read(run)
    return history, comparison_table([ComparedRun(run, history, read_settings(run))] * 2, "en")


def a_take(path: Path) -> object:
    """List the takes and open one, as the inference tab does."""
    project = Project(path.parents[2])
    return takes.newest(project), takes.load(project, path.parent.name).flags


def write_story(path: Path) -> None:
    with EventLog(path) as events:
        events.emit("started", pid=1)
        events.emit("clips", split="train", used=3, aside=0)
        events.emit("optimization", name="enable_sdpa", changed=2, detail="fast")
        events.emit("what_is_on", message="sdpa: on", parts={"sdpa": "on"})
        events.emit("memory_plan", fits=True, message="1 GiB", parts={"weights": 1.0})
        for step in range(1, 6):
            events.emit("train", step=step, epoch=step / 4, loss=1 / step, grad_norm=1.0, learning_rate=1e-3)
            events.emit("progress", step=step, total=5, seconds_left=5.0 - step)
        events.emit("evaluation", step=5, epoch=1.0, loss=0.5, loss_text=0.1, loss_audio=0.4)
        events.emit("sample", step=5, text="a", file="samples/step_5/1.wav")
        events.emit("resumed", step=4, epoch=0.9)
        events.emit("ended", status="finished", message="")


@pytest.mark.parametrize(
    ("place", "write", "read", "refuses"),
    [
        ("runs/1-train/events.jsonl", write_story, story, False),  # a damaged line is passed over
        (f"{takes.FOLDER}/1/{takes.METADATA}", lambda path: path.write_text(json.dumps(TAKE)), a_take, True),
    ],
)
def test_the_page_reads_or_refuses(
    tmp_path: Path, place: str, write: Callable[[Path], object], read: Callable[[Path], object], *, refuses: bool
) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    write(path)
    whole, outcomes = path.read_bytes(), []
    assert read(path)
    for number in range(INPUTS):
        path.write_bytes(mutant(whole, f"9/{place}/{number}").content)
        outcomes.append(is_refused(partial(read, path)))
    assert any(outcomes) == refuses


def test_a_number_that_no_float_holds_is_left_out_of_the_curves(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"kind": "train", "step": 1, "epoch": 1, "loss": %s}\n' % ("7" * 400))
    told = HistoryCache().read(Run(tmp_path))
    assert told.step == 1
    assert told.points("loss") == []
