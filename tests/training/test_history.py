"""What a run has reported, read from its events a little at a time."""

import json
import time
from pathlib import Path

import pytest

from utils.core.events import EventLog
from utils.core.facts import LinesMissing, Optimization, Progress, to_json
from utils.core.wording import describe
from utils.studio.run_history import MAX_POINTS, EventReader, HistoryCache, RunHistory
from utils.studio.run_state import State
from utils.studio.runs import Run
from utils.training.facts import MemoryPlan
from utils.ui import progress, views
from utils.ui.tabs.training import render


def train(step: int, audio: object = 1.0, **more: object) -> dict[str, object]:
    return {"kind": "train", "step": step, "loss_audio": audio, **more}


def history_of(*events: dict[str, object]) -> RunHistory:
    history = RunHistory()
    for event in events:
        history.add(event)
    return history


def write(path: Path, *events: object) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(event)}\n" for event in events)


def steps(history: RunHistory) -> list[float]:
    return [step for step, _ in history.points("loss_audio")]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([*map(train, range(1, 9)), {"kind": "resumed", "step": 5}, train(6)], [1, 2, 3, 4, 5, 6]),
        ([*map(train, (1, 2, 3, 4)), *map(train, (3, 4, 5))], [1, 2, 3, 4, 5]),
        ([train(1, "nan"), train(2, None), train(3, 10**400), train(4)], [4]),
    ],
    ids=["resumed", "rolled back", "invalid values"],
)
def test_a_curve_has_each_step_once(events: list[dict[str, object]], expected: list[float]) -> None:
    assert steps(history_of(*events)) == expected


@pytest.mark.parametrize("cut", [0, 1, -1])
def test_lines_cut_off_the_end_are_named(tmp_path: Path, cut: int) -> None:
    run = Run(tmp_path / "20260101-120000-train")
    run.folder.mkdir()
    with EventLog(run.events) as log:
        for step in range(1, 4):
            log.report(Progress(step, 3))
        run.write_state(State("train", "finished", 1.7e9, lines=log.number))
    lines = run.events.read_bytes().splitlines(keepends=True)
    run.events.write_bytes(b"".join(lines[:cut]))
    history = HistoryCache().read(run)
    assert list(history.warnings) == [LinesMissing(len(lines[:cut]), 4)]


def test_a_resumed_run_repeats_its_evaluations() -> None:
    evaluations = [{"kind": "evaluation", "step": 10 * number, "loss": loss} for number, loss in enumerate((1, 2, 1))]
    history = history_of(*evaluations, {"kind": "resumed", "step": 10}, evaluations[2] | {"loss": 1.5})
    assert history.points("eval") == [(0, 1), (10, 2), (20, 1.5)]
    assert history.best == (1.5, 20)  # the base model, at step 0, does not count


def test_every_kind_of_event_is_read() -> None:
    history = history_of(
        {"kind": "problem", "message": "x.wav"},
        {"kind": "clips", "split": "train", "used": 12, "aside": 1},
        {"kind": "clips", "split": "eval", "used": 4, "aside": 2},
        {"kind": "optimization", "name": "enable_sdpa", "changed": 30, "detail": "30 layers"},
        {"kind": "what_is_on", "parts": {"TF32": "off"}},
        to_json(MemoryPlan(True, available=9)),
        {"kind": "warning", "message": "careful"},
        train(1),
        {"kind": "sample", "step": 1, "text": "ሰላም", "file": "1.wav"},
        {"kind": "saved", "step": 1},
    )
    assert (history.saved, history.step) == (1, 1)
    assert (history.used, history.excluded, history.problem_count) == ({"train": 12, "eval": 4}, 3, 1)
    assert history.switches == {"enable_sdpa": Optimization("enable_sdpa", 30, "30 layers")}
    assert (history.active, history.memory) == ({"TF32": "off"}, MemoryPlan(True, available=9))
    assert [describe(warning) for warning in history.warnings] == ["careful"]  # as version 1.1 wrote it
    assert history.samples[0].text == "ሰላም"


@pytest.mark.parametrize("value", ["1" + "0" * 400, "NaN", "[1]", "null", '"five"'])
def test_a_damaged_value_does_not_block_the_view(tmp_path: Path, value: str) -> None:
    run = Run(tmp_path)
    run.write_state(State(verb="train", status="starting", created=time.time()))
    names = ("time", "step", "total", "percent", "seconds_left", "epoch", "loss_audio", "changed", "parts", "used")
    kinds = ("train", "progress", "resumed", "evaluation", "optimization", "what_is_on", "clips", "sample")
    damaged = ", ".join(f'"{name}": {value}' for name in names)
    write(run.events, train(1), {"kind": "progress", "step": 1, "total": 9})
    with run.events.open("a", encoding="utf-8") as file:
        file.writelines(f'{{"kind": "{kind}", {damaged}}}\n' for kind in kinds)
        file.writelines(f'{{"kind": "train", "step": 2, "{name}": {value}}}\n' for name in names if name != "step")
    history = EventReader(run.events).read()
    assert (history.step, history.read) == (2, 1.0)
    assert (history.switches, history.samples) == ({}, [])
    assert "Stopped at step 2" in render.facts(run, run.current_state(), history)
    assert views.log(run)
    assert progress.facts(run, run.current_state())


def test_a_long_log_is_read_once_however_often_a_tick_asks(tmp_path: Path) -> None:
    run, cache = Run(tmp_path), HistoryCache()
    with run.events.open("wb") as file:
        file.truncate(4 << 30)  # sparse: it takes no space
    shares = [cache.read(run).read for _ in range(4)]
    assert 0 < shares[0] < 1
    assert set(shares) == {shares[0]}


@pytest.mark.alone
def test_a_large_log_is_read_in_short_calls(tmp_path: Path) -> None:
    path, count = tmp_path / "events.jsonl", 200_000
    write(path, *(train(step, step / count) for step in range(1, count + 1)))
    reader = EventReader(path)
    durations: list[float] = []
    while not durations or reader.history.read < 1:
        began = time.perf_counter()
        reader.read(0.05)
        durations.append(time.perf_counter() - began)
    assert min(durations) < 0.3
    assert reader.history.step > count - 1000
    points = reader.history.points("loss_audio")
    assert MAX_POINTS <= len(points) < 2 * MAX_POINTS
    assert all(abs(value - step / count) < 1e-6 for step, value in points)
