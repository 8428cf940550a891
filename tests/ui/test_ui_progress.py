"""The phases of a run, read from its newest events."""

import time
from pathlib import Path

import pytest

from utils.studio.run_state import State
from utils.studio.runs import Run, Status
from utils.ui import progress


def state(seconds: float, verb: str = "prepare", status: Status = "running") -> State:
    return State(verb=verb, status=status, created=time.time() - seconds)


@pytest.mark.parametrize(
    ("verb", "event", "phase"),
    [
        ("prepare", {"kind": "started"}, "find"),
        ("prepare", {"kind": "fetched", "name": "a.zip", "percent": 40}, "download"),
        ("prepare", {"kind": "progress", "part": "check_texts", "step": 1, "total": 3}, "check_texts"),
        ("prepare", {"kind": "progress", "part": "check_texts", "step": 3, "total": 3}, "prepare"),
        ("prepare", {"kind": "progress", "step": 1, "total": 3, "percent": 20}, "prepare"),
        ("train", {"kind": "progress", "part": "audio", "step": 1, "total": 3}, "audio"),
        ("train", {"kind": "progress", "part": "audio", "step": 3, "total": 3}, "train"),
        ("train", {"kind": "progress", "step": 1, "total": 3}, "train"),
        ("export", {"kind": "progress", "step": 1, "total": 3}, "export"),
    ],
)
def test_the_phase_is_that_of_the_newest_event(verb: str, event: dict[str, object], phase: str) -> None:
    assert progress.position(verb, [{"kind": "started"}, event]).phase == phase


def test_a_training_is_not_finished_before_its_first_step() -> None:
    encoded = {"kind": "progress", "part": "audio", "step": 49, "total": 49}
    assert progress.position("train", [encoded]).percent is None


def test_a_run_that_has_reported_nothing_is_starting(tmp_path: Path) -> None:
    assert "starting …" in progress.phases(Run(tmp_path), state(1, "train"))


def test_earlier_phases_are_shown_as_done(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.events.write_text('{"kind": "progress", "part": "check_texts", "step": 41, "total": 100}\n', encoding="utf-8")
    shown = progress.phases(run, state(30))
    places = [shown.index(name) for name in ("Find recordings", "Check texts", "Cut and score clips")]
    assert places == sorted(places)
    assert shown.count('class="done"') == 1
    assert "41 %" in shown


def test_a_run_whose_state_is_damaged_has_no_phases(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.state_file.write_text("{", encoding="utf-8")
    shown = progress.facts(run, run.current_state())
    assert 'class="unreadable"' in shown
    assert "<ol" not in shown
