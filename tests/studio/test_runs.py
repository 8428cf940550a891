"""Runs are real child processes that survive whatever happens to the page."""

import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import psutil
import pytest

from tests.run_kinds.count import CountConfig
from tests.soak.mounting import fill
from tests.waiting import wait_for
from utils.core.errors import RunBusyError, RunError, StorageError
from utils.core.events import read_events
from utils.core.facts import Stop
from utils.core.paths import ROOT
from utils.core.processes import identity, machine
from utils.studio import runs
from utils.studio.facts import RunActiveError
from utils.studio.paths import Project
from utils.studio.run_state import State
from utils.studio.runs import Run, Status

LONG = CountConfig(seconds=60, ticks_per_second=20)
SHORT = CountConfig(seconds=0.2, ticks_per_second=20)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path / "project")
    yield project
    for run in runs.list_runs(project):
        if run.current_state().status in runs.ACTIVE and run.current_state().pid not in {0, os.getpid()}:
            runs.stop_now(run, grace=0)


def ended(run: Run) -> Status:
    wait_for(lambda: run.current_state().status not in runs.ACTIVE)
    return run.current_state().status


def counting(project: Project) -> Run:
    return runs.start("count", LONG, project).run


def kinds(run: Run) -> list[object]:
    return [event["kind"] for event in read_events(run.events).events]


def steps(run: Run) -> list[object]:
    return [event["step"] for event in read_events(run.events).events if event["kind"] == "progress"]


def test_a_run_counts_to_its_end(project: Project) -> None:
    run = runs.start("count", SHORT, project).run
    assert ended(run) == "finished"
    assert steps(run) == [1, 2, 3, 4]
    assert kinds(run)[-1] == "ended"
    assert CountConfig.load(run.config) == SHORT
    assert not runs.stop_and_save(run)  # stopping what has ended changes nothing
    assert runs.stop_now(run).status == "finished"
    assert not run.stop_file.exists()


def test_a_run_that_ends_before_it_reads_a_request_does_not_stop_for_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = fake(project, running())
    monkeypatch.setattr(runs, "write_atomically", lambda *_: run.write_state(running(status="finished")))
    assert not runs.stop_and_save(run)


@pytest.mark.parametrize("is_resumed", [False, True], ids=["started", "resumed"])
def test_ctrl_c_before_the_process_is_there_stops_a_run(project: Project, *, is_resumed: bool) -> None:
    begin: Callable[..., object] = partial(runs.start, "count", SHORT, project)
    if is_resumed:
        begin = partial(runs.resume, fake(project, State("count", "stopped", 0)))
    with pytest.raises(KeyboardInterrupt):
        begin(before=Mock(side_effect=KeyboardInterrupt))
    assert [run.read_state().status for run in runs.list_runs(project)] == ["stopped"]


def test_a_run_is_found_only_inside_the_project(project: Project) -> None:
    run = fake(project, running())
    assert runs.find_run(project, run.name) == run
    with pytest.raises(StorageError):
        runs.find_run(project, "../project")


def test_a_run_is_listed_once_it_has_begun(project: Project) -> None:
    run = runs.create("count", SHORT, project)
    state = run.read_state()
    run.state_file.unlink()  # as while it is being created
    assert runs.list_runs(project) == []
    (run.folder / "checkpoints").mkdir()  # copied without the rest
    assert runs.list_runs(project) == [run]
    (run.folder / "checkpoints").rmdir()
    run.state_file.symlink_to(run.state_file)  # which cannot be opened
    assert runs.list_runs(project) == [run]
    run.write_state(state)
    assert runs.list_runs(project) == [run]


STARTER = """
import sys
from pathlib import Path
from utils.studio import runs
from tests.run_kinds.count import CountConfig
from utils.studio.paths import Project
print(runs.start("count", CountConfig(seconds=60, ticks_per_second=20), Project(Path(sys.argv[1]))).run.folder)
"""


def test_two_pages_start_one_run_that_outlives_them(project: Project) -> None:
    words = [sys.executable, "-c", STARTER, str(project.root)]
    pages = [subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    folders = {page.communicate(timeout=60)[0].strip() for page in pages}
    (run,) = runs.list_runs(project)
    assert folders == {str(run.folder)}
    seen = len(steps(run))
    wait_for(lambda: len(steps(run)) > seen)
    assert run.current_state().status == "running"


@pytest.mark.slow
def test_a_killed_run_resumes_where_it_was(project: Project) -> None:
    run = runs.start("count", CountConfig(seconds=1.5, ticks_per_second=20), project).run
    wait_for(lambda: len(steps(run)) >= 5)
    os.kill(run.current_state().pid, signal.SIGKILL)
    assert ended(run) == "lost"
    runs.resume(run)
    assert ended(run) == "finished"
    assert steps(run) == list(range(1, 31))


@pytest.mark.slow
def test_a_stopped_run_resumes_but_not_beside_another_of_its_kind(project: Project) -> None:
    first = runs.start("count", CountConfig(seconds=1, ticks_per_second=10), project).run
    wait_for(lambda: len(steps(first)) >= 2)
    runs.stop_and_save(first)
    assert ended(first) == "stopped"
    assert first.current_state().stop is Stop.SAVE
    second = counting(project)
    with pytest.raises(RunActiveError, match=second.name):
        runs.resume(first)
    runs.stop_now(second)
    assert ended(runs.resume(first)) == "finished"
    assert steps(first) == list(range(1, 11))


def test_a_run_is_deleted_only_after_it_was_stopped(project: Project) -> None:
    run = counting(project)
    with pytest.raises(RunBusyError, match="Stop it first"):
        runs.delete(run)
    assert runs.stop_now(run).status == "stopped"
    assert "saved" not in kinds(run)
    runs.delete(run)
    assert runs.list_runs(project) == []
    assert not run.folder.exists()


@pytest.mark.slow
def test_a_child_that_does_not_react_is_ended_all_the_same(project: Project) -> None:
    run = counting(project)
    pid = run.current_state().pid
    os.kill(pid, signal.SIGSTOP)
    state = runs.stop_now(run, grace=0.2)
    assert (state.status, state.stop) == ("stopped", Stop.NOW)
    wait_for(lambda: identity(pid) == "")


def ask_by_file(run: Run) -> None:
    run.stop_file.write_bytes(b"\xff\xfe")  # whatever is in it


def shut_the_machine_down(run: Run) -> None:
    wait_for(lambda: "started" in kinds(run))
    os.kill(run.current_state().pid, signal.SIGTERM)


@pytest.mark.parametrize("stop", [ask_by_file, shut_the_machine_down])
def test_a_run_that_is_asked_to_stop_saves(project: Project, stop: Callable[[Run], None]) -> None:
    run = counting(project)
    stop(run)
    assert ended(run) == "stopped"
    assert "saved" in kinds(run)


def fake(project: Project, state: State, name: str = "20260101-000000-count") -> Run:
    run = Run(project.runs / name)
    run.folder.mkdir(parents=True)
    run.write_state(state)
    return run


def running(**changes: object) -> State:
    state = State("count", "running", time.time(), os.getpid(), identity(os.getpid()), machine(), time.time())
    return dataclasses.replace(state, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, "running"), ({"identity": "another-boot/1"}, "lost"), ({"pid": 2**22 + 1}, "lost"),
        ({"machine": "elsewhere"}, "running"),
        ({"machine": "elsewhere", "heartbeat": time.time() - 1000}, "lost"),
        ({"pid": 0, "status": "starting"}, "starting"),
        ({"pid": 0, "status": "starting", "heartbeat": time.time() - 1000}, "lost"),
        ({"status": "failed", "pid": 0}, "failed"),
    ],
)  # fmt: skip
def test_a_state_is_believed_only_as_far_as_the_process(
    project: Project, changes: dict[str, object], status: Status
) -> None:
    run = fake(project, running(**changes))
    assert run.current_state().status == status
    run.state_file.write_text(json.dumps(dataclasses.asdict(running(**changes)) | {"colour": "red"}), encoding="utf-8")
    assert run.current_state().status == status  # of a later version


def test_another_process_or_machine_is_never_signalled(project: Project) -> None:
    reused = fake(project, running(identity="another-boot/1"))
    assert runs.stop_now(reused, grace=0).status == "lost"
    assert psutil.Process().is_running()
    reused.write_state(running(machine="elsewhere"))
    with pytest.raises(RunError, match="is running on elsewhere"):
        runs.stop_now(reused, grace=0)


def with_fields(**changes: object) -> str:
    return json.dumps(dataclasses.asdict(running()) | changes)


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", '{"status": "failed"}', "[" * 100_000, with_fields(created=1e300), with_fields(pid=[1]),
        with_fields(verb="../../x"),
    ],
)  # fmt: skip
def test_a_run_with_an_unreadable_state_can_be_deleted(project: Project, content: str) -> None:
    run = fake(project, running())
    run.state_file.write_text(content, encoding="utf-8")
    assert run.current_state().status == "unreadable"
    runs.delete(run)
    assert runs.list_runs(project) == []


@pytest.mark.slow
def test_a_run_repairs_its_damaged_state(project: Project) -> None:
    run = counting(project)
    run.state_file.write_text("{", encoding="utf-8")
    assert run.current_state().status == "unreadable"
    wait_for(lambda: run.current_state().status == "running")
    assert runs.stop_now(run).status == "stopped"


def test_a_run_whose_folder_is_gone_ends_by_itself(project: Project) -> None:
    run = counting(project)
    pid = run.current_state().pid
    shutil.rmtree(run.folder.rename(project.root / "deleted"))  # moved first: the run still writes to its folder
    (run.folder / "checkpoints").mkdir(parents=True)  # by a save that was being written
    wait_for(lambda: identity(pid) == "")


@pytest.mark.slow
def test_a_run_that_cannot_go_on_fails_with_the_reason(project: Project) -> None:
    run = runs.start("count", SHORT, project).run
    assert ended(run) == "finished"
    run.config.write_text("seconds: -1\n", encoding="utf-8")
    runs.resume(run)
    assert ended(run) == "failed"
    assert "seconds: -1 should be greater" in run.current_state().reason()
    assert "Traceback" not in run.log.read_text(encoding="utf-8")  # of an expected error
    run.log.unlink()
    run.log.mkdir()
    with pytest.raises(StorageError, match=r"log\.txt"):
        runs.resume(run)
    assert run.current_state().status == "failed"


def test_a_child_that_cannot_start_is_an_error_that_names_the_log(project: Project) -> None:
    with pytest.raises(RunError, match=r"did not start.*log\.txt"):
        runs.start("no-such-verb", SHORT, project)
    (run,) = runs.list_runs(project)
    assert run.current_state().status == "failed"
    assert "no_such_verb" in run.log.read_text(encoding="utf-8")


def test_nothing_is_started_on_a_full_disk(small_disk: Path) -> None:
    project = Project(small_disk / "project")
    project.runs.mkdir(parents=True)
    fill(small_disk, 0)
    with pytest.raises(StorageError, match="No space left"):
        runs.start("count", SHORT, project)
    assert runs.list_runs(project) == []


@pytest.mark.slow
def test_a_run_can_be_stopped_on_a_full_disk(small_disk: Path) -> None:
    run = runs.start("count", CountConfig(seconds=60, ticks_per_second=2), Project(small_disk / "project")).run
    pid = run.current_state().pid
    fill(small_disk, 0)
    assert runs.stop_now(run).status not in runs.ACTIVE
    assert identity(pid) == ""
    assert run.read_state().verb == "count"
