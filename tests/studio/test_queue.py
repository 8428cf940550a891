"""What becomes of a request to start a run, and the queue, which goes on whatever happens to its runs."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.run_kinds.count import CountConfig
from tests.waiting import wait_for
from utils.core.storage import read_object
from utils.studio import runs
from utils.studio.facts import Status
from utils.studio.paths import Project

KIND = "count"
LONG = CountConfig(seconds=60, ticks_per_second=20)


def of_seconds(seconds: float) -> CountConfig:
    return LONG.model_copy(update={"seconds": seconds})


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path / "project")
    yield project
    for run in runs.queued_runs(project):
        runs.stop_now(run)
    for run in runs.list_runs(project):
        runs.stop_now(run, grace=0)


def status(run: runs.Run) -> Status:
    return run.current_state().status


def owner(project: Project) -> int:
    return int(read_object(project.runs / runs.OWNER).get("pid", 0))


def two(project: Project) -> tuple[runs.Run, runs.Run]:
    """Start a run, and another one that waits for it."""
    return runs.start(KIND, LONG, project).run, runs.start(KIND, of_seconds(9), project).run


def test_a_request_with_the_same_settings_joins(project: Project) -> None:
    first = runs.start(KIND, LONG, project).run
    assert runs.start(KIND, LONG, project)[:2] == (first, "joined")


def test_a_request_with_other_settings_is_queued(project: Project) -> None:
    first = runs.start(KIND, LONG, project).run
    second = runs.start(KIND, of_seconds(9), project)
    assert (second.outcome, second.ahead, status(second.run)) == ("queued", first.name, "queued")


def test_a_request_with_the_settings_of_a_queued_run_joins_it(project: Project) -> None:
    _, second = two(project)
    assert runs.start(KIND, of_seconds(9), project)[:2] == (second, "joined")


def test_memory_is_freed_only_for_a_run_that_starts_now(project: Project) -> None:
    freed: list[str] = []
    runs.start(KIND, LONG, project, before=lambda: freed.append("first"))
    runs.start(KIND, of_seconds(9), project, before=lambda: freed.append("second"))
    assert freed == ["first"]


@pytest.mark.slow
def test_a_run_that_is_killed_is_followed_by_the_next(project: Project) -> None:
    first, second = two(project)
    os.kill(first.current_state().pid, signal.SIGKILL)  # as the system does for lack of memory
    wait_for(lambda: status(second) == "running", 30)


@pytest.mark.slow
def test_a_queue_whose_owner_was_killed_goes_on_when_somebody_looks(project: Project) -> None:
    first, second = two(project)
    wait_for(lambda: owner(project), 30)
    psutil.Process(owner(project)).kill()
    os.kill(first.current_state().pid, signal.SIGKILL)
    while status(second) == "queued":
        runs.watch_queue(project)
        time.sleep(0.1)
    wait_for(lambda: status(second) == "running", 30)


@pytest.mark.slow
def test_the_owner_of_the_queue_ends_with_it(project: Project) -> None:
    _, second = two(project)
    wait_for(lambda: owner(project), 30)
    runs.stop_now(second)
    wait_for(lambda: not owner(project), 30)


def test_a_run_that_leaves_the_queue_has_stopped(project: Project) -> None:
    _, second = two(project)
    runs.stop_and_save(second)
    assert status(second) == "stopped"
