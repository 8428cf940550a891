"""What the page shows of plain facts."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from utils.core.errors import AmharicTtsError, RunError
from utils.runs import Run, State, Status, processes
from utils.runs.monitor import Reading
from utils.system.doctor import Finding
from utils.ui import views
from utils.ui.i18n import t
from utils.ui.tabs.system.tab import read_findings
from utils.ui.tabs.training.queries import read_result

NASTY = "<img src=x onerror=alert(1)>"


def make_run(folder: Path, status: Status = Status.STOPPED, message: str = "") -> Run:
    folder.mkdir(parents=True)
    run = Run(folder)
    run.write_state(State(verb="rehearse", status=status, created=time.time(), message=message))
    return run


@pytest.mark.parametrize(
    ("status", "stop", "resume", "delete"),
    [
        (Status.STARTING, True, False, False),
        (Status.RUNNING, True, False, False),
        (Status.STOPPED, False, True, True),
        (Status.FAILED, False, True, True),
        (Status.LOST, False, True, True),
        (Status.FINISHED, False, False, True),
        (Status.UNREADABLE, False, False, True),
    ],
)
def test_each_status_allows_its_actions(status: Status, stop: bool, resume: bool, delete: bool) -> None:
    why = views.disabled_run_actions(status)
    assert [not reason for reason in why.values()] == [stop, stop, resume, delete]
    shown = views.disabled_reasons(why, "en")
    assert ["Stop now" in shown, "Resume" in shown, "Delete" in shown] == [not stop, not resume, not delete]


def test_without_a_run_one_sentence_says_so() -> None:
    assert views.disabled_reasons(views.disabled_run_actions(None), "en").count(t("common.choose_run_first", "en")) == 1


def test_nothing_that_a_run_tells_becomes_html(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r1", message=NASTY)
    run.events.write_text(json.dumps({"kind": NASTY, "note": NASTY}) + "\n", encoding="utf-8")
    assert "<img" not in views.run_facts(run, run.current_state(), "en")
    assert "<img" not in views.findings([Finding(NASTY, "fail", NASTY, NASTY)], "en")


@pytest.mark.parametrize(
    "shown",
    [
        views.note(NASTY),
        views.message_box("error", NASTY),
        views.error_box(RunError(NASTY, hint=NASTY), "en"),
        views.message_list("warning", NASTY, [NASTY]),
        views.details(NASTY, ""),
        views.progress(NASTY, 1, 2),
        views.cards({NASTY: NASTY}, "en"),
        views.disabled_reasons({NASTY: NASTY, "Delete": ""}, "en"),
    ],
)
def test_nothing_that_is_told_becomes_html(shown: str) -> None:
    assert "<img" not in shown
    assert "&lt;img" in shown


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ({"Resume": "", "Delete": ""}, ""),
        ({"Resume": "Wait.", "Delete": "Wait."}, "Wait."),
        ({"Resume": "Wait.", "Delete": ""}, "Resume: Wait."),
        ({"Stop now": "Wait.", "Resume": "Go.", "Delete": "Wait."}, "Stop now, Delete: Wait.Resume: Go."),
    ],
)
def test_each_reason_is_said_once(why: dict[str, str], said: str) -> None:
    assert re.sub("<[^>]*>", "", views.disabled_reasons(why, "en")) == said


@pytest.mark.parametrize(
    ("shown", "role"),
    [
        (views.message_box("error", "No."), ' role="alert"'),
        (views.message_box("success", "Yes."), ' role="status"'),
        (views.message_box("warning", "Perhaps.", aloud=False), ""),
    ],
)
def test_a_screen_reader_says_an_answer_at_once(shown: str, role: str) -> None:
    assert shown.partition(">")[0].partition('"')[2].partition('"')[2] == role
    assert views.message_box("success", "") == ""


def test_progress_comes_from_the_last_event(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r1")
    lines = [json.dumps({"kind": "progress", "step": step, "total": 9}) for step in (1, 2, 3)]
    run.events.write_text("\n".join(lines) + '\n{"kind": "progr', encoding="utf-8")
    shown = views.run_facts(run, run.current_state(), "en")
    assert '<progress max="9" value="3"' in shown
    assert "progress step=3 total=9" in shown


def test_a_large_log_is_shown_at_once(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r1")
    with run.events.open("wb") as file:
        file.truncate(1 << 30)  # a sparse gigabyte
        file.seek(0, 2)
        file.write(b'\n{"kind": "progress", "step": 1, "total": 2}\n')
    began = time.perf_counter()
    assert "progress step=1 total=2" in views.run_facts(run, run.current_state(), "en")
    assert time.perf_counter() - began < 2  # a poll comes every two seconds


def test_a_hundred_runs_are_listed_within_a_poll(tmp_path: Path) -> None:
    found = [make_run(tmp_path / f"r{number:03}") for number in range(100)]
    began = time.perf_counter()
    choices = views.run_choices(found, "en")
    assert time.perf_counter() - began < 2  # a poll comes every two seconds
    assert choices[7] == ("r007 · stopped", "r007")


def test_the_worst_finding_comes_first() -> None:
    found = [Finding("a", "pass", ""), Finding("b", "fail", ""), Finding("c", "warn", "")]
    shown = views.findings(found, "en")
    assert shown.index("✗") < shown.index("!") < shown.index("✓")


def test_what_cannot_be_read_is_a_dash() -> None:
    reading = Reading(0.0, None, None, None, None, None, None, None, 3.25, 16.0, 12.4, None)
    shown = views.readings(reading, "en")
    assert all(text in shown for text in ("none", "3.2 of 16.0 GiB", "12 %", "– free"))
    assert "ነፃ" in views.readings(reading, "am")


ANSWERS: dict[Callable[[str], Any], str] = {
    read_findings: '[{"name": "Python", "verdict": "pass", "detail": "3.11", "cure": ""}]',
    read_result: 'noise\n{"kind": "cpu"}\n',
}
PROGRAM = "import sys; sys.stdout.write(sys.argv[1]); sys.exit(sys.argv[2])"


@pytest.mark.parametrize("read", ANSWERS)
def test_a_child_that_breaks_off_says_why(read: Callable[[str], Any]) -> None:
    def ask(printed: str, complaint: str = "") -> Any:
        return processes.query(["-c", PROGRAM, printed, complaint], read, timeout=60)

    assert ask(ANSWERS[read])
    for printed in ("", "[5]", "5", "noise"):
        with pytest.raises(RunError, match="ModuleNotFoundError: six"):
            ask(printed, "Traceback\nModuleNotFoundError: six")
    with pytest.raises(RunError, match="no readable output"):
        ask('{"name": 1}' if read is read_findings else "5")


def test_an_error_of_a_child_is_told_as_it_tells_it() -> None:
    with pytest.raises(AmharicTtsError, match=r"no list.*Make one"):
        read_result('{"error": "There is no list.", "hint": "Make one."}')


def test_a_child_that_does_not_answer_is_not_waited_for() -> None:
    with pytest.raises(RunError, match=r"0\.1 s"):
        processes.query(["-c", "import time; time.sleep(60)"], str, timeout=0.1)
