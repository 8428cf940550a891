"""What a run told, read from its events a little at a time."""

import json
import time
from pathlib import Path

import pytest

from utils.runs import Run, State, Status
from utils.ui import views
from utils.ui.tabs.data import render as preparing
from utils.ui.tabs.training import render
from utils.ui.tabs.training.charts import Line, chart, short
from utils.ui.tabs.training.event_reader import Follower, Watcher
from utils.ui.tabs.training.run_history import MOST_POINTS, Curve, Story

NASTY = "<img src=x onerror=alert(1)>"


def train(step: int, audio: object = 1.0, **more: object) -> dict[str, object]:
    return {"kind": "train", "step": step, "loss_audio": audio, "loss_text": 0.5, "learning_rate": 1e-5, **more}


def evaluation(step: int, loss: float) -> dict[str, object]:
    return {"kind": "evaluation", "step": step, "loss": loss, "loss_audio": loss, "loss_text": loss}


def told(*events: dict[str, object]) -> Story:
    story = Story()
    for event in events:
        story.take(event)
    return story


def write(path: Path, *events: object) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{json.dumps(event)}\n" for event in events)


def steps(story: Story, name: str = "loss_audio") -> list[float]:
    return [step for step, _ in story.points(name)]


def test_a_run_that_goes_on_has_one_curve() -> None:
    story = told(*map(train, range(1, 9)), {"kind": "resumed", "step": 5}, *map(train, (6, 7)))
    assert steps(story) == [1, 2, 3, 4, 5, 6, 7]
    assert story.step == 7


def test_a_run_that_rolls_back_has_one_curve() -> None:
    assert steps(told(*map(train, (1, 2, 3, 4)), *map(train, (3, 4, 5)))) == [1, 2, 3, 4, 5]


def test_a_resumed_run_forgets_evaluations_that_it_takes_again() -> None:
    story = told(
        evaluation(0, 3), evaluation(10, 2), evaluation(20, 1), {"kind": "resumed", "step": 10}, evaluation(20, 1.5)
    )
    assert story.points("eval") == [(0, 3), (10, 2), (20, 1.5)]
    assert story.best == (1.5, 20)


def test_the_base_model_is_no_best_evaluation() -> None:
    assert told(evaluation(0, 1), evaluation(10, 2)).best == (2, 10)


@pytest.mark.parametrize("value", ["nan", None, True, float("nan"), float("inf"), [1], {}, 10**400])
def test_what_is_no_number_makes_no_point(value: object) -> None:
    story = told(train(1, value), train(2, 1.0))
    assert steps(story) == [2]
    assert story.step == 2


@pytest.mark.parametrize(
    "kind", ["train", "evaluation", "resumed", "progress", "optimization", "what_is_on", "clips", "sample"]
)
@pytest.mark.parametrize("odd", [None, "five", [5], {"a": 1}, True, 10**400, -(10**400), 1e400])
def test_an_event_without_its_fields_changes_nothing(kind: str, odd: object) -> None:
    names = ("step", "total", "changed", "parts", "used", "aside")
    story = told({"kind": kind} | dict.fromkeys(names, odd), {"kind": kind})
    assert (story.step, story.total, story.switches, story.samples) == (0, 0, {}, [])


def test_the_whole_story_of_a_run() -> None:
    story = told(
        {"kind": "progress", "part": "audio", "step": 3, "total": 16},
        {"kind": "problem", "message": "x.wav"},
        {"kind": "clips", "split": "train", "used": 12, "aside": 1},
        {"kind": "clips", "split": "eval", "used": 4, "aside": 2},
        {"kind": "optimization", "name": "enable_sdpa", "changed": 30, "detail": "30 layers"},
        {"kind": "what_is_on", "parts": {"TF32": "off"}},
        {"kind": "memory_plan", "message": "fits"},
        {"kind": "warning", "message": "careful"},
        train(1, seconds_left=60.0),
        {"kind": "progress", "step": 1, "total": 100, "seconds_left": 60.0},
        {"kind": "sample", "step": 1, "text": "ሰላም", "file": "1.wav"},
        {"kind": "ready", "folder": "/ready"},
    )
    assert (story.total, story.step, story.seconds_left, story.phase) == (100, 1, 60.0, None)
    assert (story.used, story.aside, story.problem_count) == ({"train": 12, "eval": 4}, 3, 1)
    assert story.switches == {"enable_sdpa": (30, "30 layers")}
    assert (story.on, story.memory, list(story.warnings)) == ({"TF32": "off"}, "fits", ["careful"])
    assert (story.samples[0].text, story.ready) == ("ሰላም", "/ready")


def test_damaged_lines_are_passed_over_and_a_half_written_one_waits(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, train(1))
    with path.open("ab") as file:
        file.write(b'{"kind": "train", "step\n\xff\xfe\x00\n[1]\n"x"\n\n{"kind": "train", "step": 2, "loss_audio": 1.0')
    follower = Follower(path)
    assert steps(follower.read_on()) == [1]
    with path.open("ab") as file:
        file.write(b"}\n")
    assert steps(follower.read_on()) == [1, 2]


@pytest.mark.parametrize("figure", ["1" + "0" * 400, "1" + "0" * 300, "NaN", "Infinity", "1e999", "-1e300", "[1]"])
def test_a_damaged_figure_does_not_block_the_view(tmp_path: Path, figure: str) -> None:
    run = Run(tmp_path)
    run.write_state(State(verb="train", status=Status.STARTING, created=time.time()))
    names = ("time", "step", "total", "percent", "seconds_left", "epoch", "loss_audio", "learning_rate")
    damaged = ", ".join(f'"{name}": {figure}' for name in names)
    write(run.events, train(1), {"kind": "progress", "step": 1, "total": 9})
    with run.events.open("a", encoding="utf-8") as file:
        file.writelines(f'{{"kind": "{kind}", {damaged}}}\n' for kind in ("train", "progress", "resumed", "fetched"))
        file.writelines(f'{{"kind": "train", "step": 2, "{name}": {figure}}}\n' for name in names if name != "step")
    follower = Follower(run.events)
    story = follower.read_on()
    assert (story.step, story.total, story.read) == (2, 9, 1.0)
    shown = [render.facts(run, run.current_state(), story, "en"), render.curves(story, "en"), render.log(run)]
    assert "Step 2 of 9" in shown[0]
    assert "about" not in shown[0]
    assert all(
        [*shown, preparing.facts(run, run.current_state(), "en"), views.run_facts(run, run.current_state(), "en")]
    )


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    follower = Follower(path)
    assert follower.read_on().read == 1
    for step in range(1, 4):
        write(path, train(step))
        before = follower.offset
        assert steps(follower.read_on())[-1] == step
        assert follower.offset > before


def test_a_log_that_was_replaced_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write(path, *map(train, range(1, 9)))
    follower = Follower(path)
    follower.read_on()
    path.unlink()
    write(path, train(1))
    assert steps(follower.read_on()) == [1]


def test_what_was_shown_stays_as_it_was(tmp_path: Path) -> None:
    run = Run(tmp_path)
    write(run.events, train(1), {"kind": "warning", "message": "a"})
    watcher = Watcher()
    shown = watcher.look(run)
    write(run.events, train(2), {"kind": "warning", "message": "b"})
    assert steps(watcher.look(run)) == [1, 2]
    assert (steps(shown), list(shown.warnings)) == ([1], ["a"])


def test_a_curve_is_thinned_and_keeps_its_shape() -> None:
    curve = Curve()
    for step in range(1, 200_001):
        curve.add(step, step / 200_000)
    assert MOST_POINTS <= len(curve.points) < 2 * MOST_POINTS
    assert all(abs(value - step / 200_000) < 1e-6 for step, value in curve.points)
    curve.cut(100_000)
    assert max(step for step, _ in curve.points) <= 100_000


def test_a_large_log_is_read_in_short_looks(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    lines = (json.dumps(train(step, 1.0 + step)) for step in range(1, 100_001))
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    follower = Follower(path)
    looks: list[float] = []
    while not looks or follower.story.read < 1:
        began = time.perf_counter()
        follower.read_on(0.05)
        looks.append(time.perf_counter() - began)
    assert min(looks) < 0.3
    assert follower.story.step > 99_000


def test_a_chart_shows_every_curve_with_its_newest_value() -> None:
    shown = chart("Loss", [Line("Training", [(1, 2.0), (2, 1.0)]), Line(NASTY, [(1, 3.0)], dotted=True)], "en")
    assert shown.count('class="line') == 2
    assert shown.count('class="dots') == 1
    assert "<img" not in shown
    assert "Training <b>1</b>" in shown
    assert 'role="img"' in shown


@pytest.mark.parametrize("points", [[(0, 0.0)], [(5, -1.0)], [(1, 2.0), (2, 2.0)], [(1, 1e-9), (2, 1e9)]])
def test_odd_curves_are_drawn(points: list[tuple[float, float]]) -> None:
    shown = chart("Loss", [Line("x", points)], "en")
    assert "nan" not in shown
    assert "<path" in shown


def test_a_chart_without_points_says_so() -> None:
    assert "No figures yet" in chart("Loss", [Line("x", [])], "en")


@pytest.mark.parametrize(
    ("value", "written"), [(0, "0"), (5e-6, "5.00e-6"), (0.123456, "0.123"), (12345.6, "12346"), (1.5, "1.5")]
)
def test_figures_are_short(value: float, written: str) -> None:
    assert short(value) == written
