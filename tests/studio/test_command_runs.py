"""Commands that go on as runs when the page is closed."""

from pathlib import Path

import pytest

from tests.waiting import wait_for
from utils.core.paths import TINY_MODEL
from utils.studio import command_runs, runs
from utils.studio.paths import Project
from utils.studio.runs import Run

pytestmark = pytest.mark.slow


def ended(project: Project, kind: str) -> Run:
    run = command_runs.newest(kind, project)
    assert run
    wait_for(lambda: run.current_state().status not in runs.ACTIVE, 120)
    return run


def test_a_command_does_its_work_as_a_run(tmp_path: Path) -> None:
    project = Project(tmp_path / "p")
    command_runs.start("export", [str(TINY_MODEL), "--out", str(tmp_path / "out")], project)
    assert ended(project, "export").current_state().status == "finished"
    assert (tmp_path / "out" / "model.pth").is_file()


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project in which a command has failed twice."""
    folder = tmp_path_factory.mktemp("failing")
    project = Project(folder / "p")
    for _ in range(2):
        command_runs.start("export", [str(folder / "nothing"), "--out", str(folder / "out")], project)
        ended(project, "export")
    return project


def test_a_command_that_fails_says_why(failing: Project) -> None:
    state = ended(failing, "export").current_state()
    assert (state.status, "nothing" in state.reason()) == ("failed", True)


def test_only_the_newest_run_of_a_kind_is_kept(failing: Project) -> None:
    assert len(runs.list_runs(failing)) == 1
