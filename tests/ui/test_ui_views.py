"""What the page shows of plain facts."""

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from utils.amharic import explain
from utils.core.errors import AmharicTtsError, RunError
from utils.runs import Run, State, Status, processes
from utils.runs.monitor import Reading
from utils.system.doctor import Finding
from utils.ui import views
from utils.ui.tabs import pronunciation
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
        (Status.LOST, False, True, True),
        (Status.FINISHED, False, False, True),
        (Status.UNREADABLE, False, False, True),
    ],
)
def test_each_status_allows_its_actions_and_says_why_not(
    status: Status, stop: bool, resume: bool, delete: bool
) -> None:
    why = views.disabled_run_actions(status)
    assert [not reason for reason in why.values()] == [stop, stop, resume, delete]
    shown = views.disabled_reasons(why, "en")
    assert ["Stop now" in shown, "Resume" in shown, "Delete" in shown] == [not stop, not resume, not delete]


@pytest.mark.parametrize(
    ("why", "shown"),
    [
        ({"Resume": "", "Delete": ""}, ""),
        ({"Resume": "Wait.", "Delete": "Wait."}, "Wait."),
        ({"Stop now": "Wait.", "Resume": "Go.", "Delete": "Wait."}, "Stop now, Delete: Wait.Resume: Go."),
    ],
)
def test_each_reason_is_given_once(why: dict[str, str], shown: str) -> None:
    assert re.sub("<[^>]*>", "", views.disabled_reasons(why, "en")) == shown


def test_nothing_that_a_run_reports_becomes_html(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r1", message=NASTY)
    run.events.write_text(json.dumps({"kind": NASTY, "note": NASTY}) + "\n", encoding="utf-8")
    assert "<img" not in views.run_facts(run, run.current_state(), "en")
    assert "<img" not in views.findings([Finding(NASTY, "fail", NASTY, NASTY)], "en")
    assert "<img" not in pronunciation.show(explain(f"{NASTY} ሰላም"), "en")


def test_no_text_becomes_html() -> None:
    for shown in (
        views.note(NASTY),
        views.message_box("error", NASTY),
        views.error_box(RunError(NASTY, hint=NASTY), "en"),
        views.message_list("warning", NASTY, [NASTY]),
        views.details(NASTY, ""),
        views.progress(NASTY, 1, 2),
        views.cards({NASTY: NASTY}, "en"),
        views.disabled_reasons({NASTY: NASTY, "Delete": ""}, "en"),
    ):
        assert "<img" not in shown
        assert "&lt;img" in shown


def test_a_screen_reader_announces_a_result_at_once() -> None:
    assert ' role="alert"' in views.message_box("error", "No.")
    assert ' role="status"' in views.message_box("success", "Yes.")
    assert "role" not in views.message_box("warning", "Perhaps.", aloud=False)
    assert views.message_box("success", "") == ""


def test_progress_comes_from_the_last_event_of_a_large_log(tmp_path: Path) -> None:
    run = make_run(tmp_path / "r1")
    with run.events.open("wb") as file:
        file.truncate(1 << 30)  # a sparse gigabyte
        file.seek(0, 2)
        file.write(b'\n{"kind": "progress", "step": 3, "total": 9}\n{"kind": "progr')
    began = time.perf_counter()
    shown = views.run_facts(run, run.current_state(), "en")
    assert time.perf_counter() - began < 2  # a poll comes every two seconds
    assert '<progress max="9" value="3"' in shown
    assert "progress step=3 total=9" in shown


def test_the_worst_finding_comes_first() -> None:
    found = [Finding("a", "pass", ""), Finding("b", "fail", ""), Finding("c", "warn", "")]
    shown = views.findings(found, "en")
    assert shown.index("✗") < shown.index("!") < shown.index("✓")


def test_what_cannot_be_read_is_a_dash() -> None:
    reading = Reading(0.0, None, None, None, None, None, None, None, 3.25, 16.0, 12.4, None)
    shown = views.readings(reading, "en")
    assert all(text in shown for text in ("none", "3.2 of 16.0 GiB", "12 %", "– free"))


def test_a_text_is_shown_at_every_step_with_what_is_left_out() -> None:
    explanation = explain("3 ልጆች 😀😀")
    shown = pronunciation.show(explanation, "en")
    assert all(text in shown for text in (explanation.normalized, explanation.phones, explanation.latin, "😀 × 2"))
    assert all(word.gemination in shown for word in explanation.words)
    assert "<table" not in pronunciation.show(explain("  "), "am")


def test_a_long_text_shows_its_first_words() -> None:
    shown = pronunciation.show(explain("ሰላም " * (pronunciation.MAX_WORDS + 7)), "en")
    assert "7" in shown.rpartition("</table>")[2]
    assert shown.count("<tr>") == pronunciation.MAX_WORDS + 6


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
    for printed in ("", "[5]", "noise"):
        with pytest.raises(RunError, match="ModuleNotFoundError: six"):
            ask(printed, "Traceback\nModuleNotFoundError: six")
    with pytest.raises(RunError, match="no readable output"):
        ask('{"name": 1}' if read is read_findings else "5")


def test_a_child_that_reports_an_error_or_nothing_at_all_is_an_error() -> None:
    with pytest.raises(AmharicTtsError, match=r"no list.*Make one"):
        read_result('{"error": "There is no list.", "hint": "Make one."}')
    with pytest.raises(RunError, match=r"0\.1 s"):
        processes.query(["-c", "import time; time.sleep(60)"], str, timeout=0.1)
