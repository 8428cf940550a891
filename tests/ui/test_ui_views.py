"""What the page shows of plain facts."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.ui.data_folders import add_run
from tests.worded import worded
from utils.amharic import explain
from utils.core import processes
from utils.core.errors import AmharicTtsError, RunError
from utils.studio import runs
from utils.studio.paths import Project
from utils.studio.run_state import State
from utils.studio.runs import Run, Status
from utils.studio.training_checks import read_result
from utils.system.doctor import Finding
from utils.ui import progress, step_bar, views
from utils.ui.tabs import pronunciation
from utils.ui.tabs.system.tab import read_findings

HTML = "<img src=x onerror=alert(1)>"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    run = Run(tmp_path)
    run.write_state(State(verb="count", status="stopped", created=time.time(), message=HTML))
    return run


def test_a_run_is_called_by_its_day_and_time_unless_a_person_named_it(tmp_path: Path) -> None:
    run = Run(tmp_path / "20261128-142000-train")
    run.folder.mkdir()
    assert views.run_title(run) == "Saturday 28/11 14:20:00"
    runs.write_note(run, "with Linda")
    assert "with Linda" in views.run_title(run)


def test_a_failed_preparation_is_shown_at_its_step(tmp_path: Path) -> None:
    add_run(Project(tmp_path), "20261128-142000-prepare", "failed")
    assert 'class="failed" data-open="data-tab"' in step_bar.render(Project(tmp_path))


def test_no_text_becomes_html(run: Run) -> None:
    run.events.write_text(json.dumps({"kind": HTML, "note": HTML}) + "\n", encoding="utf-8")
    for shown in (
        progress.facts(run, run.current_state()),
        views.code(views.log(run)),
        views.findings([Finding(HTML, "fail", HTML, HTML)]),
        views.note(HTML),
        views.message_box("error", HTML),
        views.error_box(worded(RunError, HTML, HTML)),
        views.details(HTML, ""),
        views.progress(HTML, 1, 2),
        views.cards({HTML: HTML}),
    ):
        assert "<img" not in shown
        assert "&lt;img" in shown
    assert "<img" not in pronunciation.show(explain(f"{HTML} ሰላም"))


def test_a_text_is_explained_word_by_word_up_to_a_limit() -> None:
    explanation = explain("3 ልጆች 😀😀")
    shown = pronunciation.show(explanation)
    assert all(text in shown for text in (explanation.normalized, explanation.phones, explanation.latin, "😀 × 2"))
    assert all(word.gemination in shown for word in explanation.words)
    shown = pronunciation.show(explain("ሰላም " * (pronunciation.MAX_WORDS + 7)))
    assert "7" in shown.rpartition("</table>")[2]
    assert shown.count("<tr>") == pronunciation.MAX_WORDS + 6


PRINTED: dict[Callable[[str], Any], str] = {
    read_findings: '[{"name": "Python", "verdict": "pass", "detail": "3.11", "cure": ""}]',
    read_result: 'noise\n{"kind": "cpu"}\n',
}
PROGRAM = "import sys; sys.stdout.write(sys.argv[1]); sys.exit(sys.argv[2])"


@pytest.mark.parametrize("read", PRINTED)
def test_a_child_that_fails_says_why(read: Callable[[str], Any]) -> None:
    def query(printed: str, error: str = "") -> Any:
        return processes.query(["-c", PROGRAM, printed, error], read, timeout=60)

    assert query(PRINTED[read])
    with pytest.raises(RunError, match="ModuleNotFoundError: six"):
        query("noise", "Traceback\nModuleNotFoundError: six")
    with pytest.raises(RunError, match="no readable output"):
        query('{"name": 1}' if read is read_findings else "5")


def test_a_child_that_reports_an_error_or_is_too_slow_is_an_error() -> None:
    with pytest.raises(AmharicTtsError, match=r"no list.*Make one"):
        read_result('{"error": "There is no list.", "hint": "Make one."}')
    with pytest.raises(RunError, match=r"0\.1 s"):
        processes.query(["-c", "import time; time.sleep(60)"], str, timeout=0.1)


@pytest.mark.parametrize(
    ("status", "actions"),
    [
        ("running", ["stop_and_save", "stop_now"]),
        *[(status, ["resume", "delete"]) for status in ("stopped", "lost")],
        *[(status, ["delete"]) for status in ("queued", "finished", "unreadable")],
    ],
)
def test_each_status_has_its_actions(status: Status, actions: list[str]) -> None:
    assert views.run_actions(status) == actions


@pytest.mark.parametrize("written", ["Ready", "Sample", "ሰላም።"])
def test_a_text_that_a_person_wrote_is_no_id(written: str) -> None:
    assert f">{written}<" in views.cell(written)
