"""Runs are real child processes that survive whatever happens to the page."""

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from utils import runs
from utils.config import RehearsalConfig
from utils.core.errors import RunBusyError, RunError, StorageError
from utils.core.events import read_events
from utils.core.paths import ROOT, Project
from utils.runs import Run, State, Status
from utils.runs.processes import identity, machine

LONG = RehearsalConfig(seconds=60, ticks_per_second=20)
SHORT = RehearsalConfig(seconds=0.2, ticks_per_second=20)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Project]:
    project = Project(tmp_path / "project")
    yield project
    for run in runs.list_runs(project):
        if run.current_state().status in runs.ACTIVE and run.current_state().pid not in {0, os.getpid()}:
            runs.stop_now(run, grace=0)


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def ended(run: Run) -> Status:
    wait_for(lambda: run.current_state().status not in runs.ACTIVE)
    return run.current_state().status


def kinds(run: Run) -> list[object]:
    return [event["kind"] for event in read_events(run.events).events]


def steps(run: Run) -> list[object]:
    return [event["step"] for event in read_events(run.events).events if event["kind"] == "progress"]


def test_a_run_counts_to_its_end(place: Project) -> None:
    run = runs.start("rehearse", SHORT, place)
    assert ended(run) is Status.FINISHED
    assert steps(run) == [1, 2, 3, 4]
    assert kinds(run)[-1] == "ended"
    assert RehearsalConfig.load(run.config) == SHORT


STARTER = """
import sys
from pathlib import Path
from utils import runs
from utils.config import RehearsalConfig
from utils.core.paths import Project
print(runs.start("rehearse", RehearsalConfig(seconds=60, ticks_per_second=20), Project(Path(sys.argv[1]))).folder)
"""


def start_from_another_process(place: Project) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", STARTER, str(place.root)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )  # fmt: skip


def test_two_pages_start_one_run_and_it_outlives_them(place: Project) -> None:
    folders = {
        page.communicate(timeout=60)[0].strip() for page in [start_from_another_process(place) for _ in range(2)]
    }
    (run,) = runs.list_runs(place)
    assert folders == {str(run.folder)}
    seen = len(steps(run))
    wait_for(lambda: len(steps(run)) > seen)
    assert run.current_state().status is Status.RUNNING


@pytest.mark.slow
def test_a_killed_child_is_lost_and_goes_on_where_it_was(place: Project) -> None:
    run = runs.start("rehearse", RehearsalConfig(seconds=1.5, ticks_per_second=20), place)
    wait_for(lambda: len(steps(run)) >= 5)
    os.kill(run.current_state().pid, signal.SIGKILL)
    assert ended(run) is Status.LOST
    runs.resume(run)
    assert ended(run) is Status.FINISHED
    assert steps(run) == list(range(1, 31))


def test_stop_and_save_saves(place: Project) -> None:
    run = runs.start("rehearse", LONG, place)
    runs.stop_and_save(run)
    assert ended(run) is Status.STOPPED
    assert "saved" in kinds(run)
    assert run.current_state().message == "Stopped and saved."


def test_a_shutdown_of_the_machine_saves(place: Project) -> None:
    run = runs.start("rehearse", LONG, place)
    wait_for(lambda: "started" in kinds(run))
    os.kill(run.current_state().pid, signal.SIGTERM)
    assert ended(run) is Status.STOPPED
    assert "saved" in kinds(run)


def test_stop_now_does_not_save(place: Project) -> None:
    run = runs.start("rehearse", LONG, place)
    assert runs.stop_now(run).status is Status.STOPPED
    assert "saved" not in kinds(run)


@pytest.mark.slow
def test_a_child_that_hears_nothing_is_ended_all_the_same(place: Project) -> None:
    run = runs.start("rehearse", LONG, place)
    pid = run.current_state().pid
    os.kill(pid, signal.SIGSTOP)
    state = runs.stop_now(run, grace=0.2)
    assert (state.status, state.message) == (Status.STOPPED, "Stopped without saving.")
    wait_for(lambda: identity(pid) == "")


def test_stopping_what_has_ended_changes_nothing(place: Project) -> None:
    run = runs.start("rehearse", SHORT, place)
    assert ended(run) is Status.FINISHED
    runs.stop_and_save(run)
    assert runs.stop_now(run).status is Status.FINISHED
    assert not run.stop_file.exists()


@pytest.mark.slow
def test_a_stopped_run_can_be_resumed(place: Project) -> None:
    run = runs.start("rehearse", RehearsalConfig(seconds=1, ticks_per_second=10), place)
    wait_for(lambda: len(steps(run)) >= 2)
    runs.stop_and_save(run)
    assert ended(run) is Status.STOPPED
    assert ended(runs.resume(run)) is Status.FINISHED
    assert steps(run) == list(range(1, 11))


def test_an_active_run_is_not_deleted(place: Project) -> None:
    run = runs.start("rehearse", LONG, place)
    with pytest.raises(RunBusyError, match="Stop it first"):
        runs.delete(run)
    runs.stop_now(run)
    runs.delete(run)
    assert runs.list_runs(place) == []
    assert not run.folder.exists()


def fake(place: Project, state: State) -> Run:
    run = Run(place.runs / "20260101-000000-rehearse")
    run.folder.mkdir(parents=True)
    run.write_state(state)
    return run


def working(**changes: object) -> State:
    state = State("rehearse", Status.RUNNING, time.time(), os.getpid(), identity(os.getpid()), machine(), time.time())
    return dataclasses.replace(state, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, Status.RUNNING),
        ({"identity": "another-boot/1"}, Status.LOST),
        ({"pid": 2**22 + 1}, Status.LOST),
        ({"identity": ""}, Status.LOST),
        ({"machine": "elsewhere"}, Status.RUNNING),
        ({"machine": "elsewhere", "heartbeat": time.time() - 1000}, Status.LOST),
        ({"pid": 0, "status": Status.STARTING}, Status.STARTING),
        ({"pid": 0, "status": Status.STARTING, "heartbeat": time.time() - 1000}, Status.LOST),
        ({"pid": 0, "status": Status.STARTING, "heartbeat": time.time() + 1000}, Status.LOST),
        ({"status": Status.FAILED, "pid": 0}, Status.FAILED),
    ],
)
def test_a_state_is_believed_only_as_far_as_the_process(
    place: Project, changes: dict[str, object], status: Status
) -> None:
    assert fake(place, working(**changes)).current_state().status is status


def test_a_reused_number_is_never_signalled(place: Project) -> None:
    run = fake(place, working(identity="another-boot/1"))
    assert runs.stop_now(run, grace=0).status is Status.LOST
    assert psutil.Process().is_running()


def test_a_run_on_another_machine_is_not_ended_from_here(place: Project) -> None:
    run = fake(place, working(machine="elsewhere"))
    with pytest.raises(RunError, match="runs on elsewhere"):
        runs.stop_now(run, grace=0)


def worded(**changes: object) -> str:
    return json.dumps(dataclasses.asdict(working()) | changes)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"status": "dancing"}',
        '{"status": "failed"}',
        "\x00" * 50,
        "[" * 100_000,
        worded(heartbeat="soon", machine="elsewhere"),
        worded(created=1e300),
        worded(pid=[1]),
        worded(message=None),
        worded(verb="../../x"),
    ],
)
def test_an_unreadable_state_is_shown_and_can_be_deleted(place: Project, content: str) -> None:
    run = fake(place, working())
    run.state_file.write_text(content, encoding="utf-8")
    assert [found.current_state().status for found in runs.list_runs(place)] == [Status.UNREADABLE]
    runs.delete(run)
    assert runs.list_runs(place) == []


@pytest.mark.slow
def test_a_run_mends_its_spoiled_state_and_can_be_stopped(place: Project) -> None:
    run = runs.start("rehearse", LONG, place)
    run.state_file.write_text("{", encoding="utf-8")
    assert run.current_state().status is Status.UNREADABLE
    wait_for(lambda: run.current_state().status is Status.RUNNING)
    assert runs.stop_now(run).status is Status.STOPPED


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_run_whose_folder_is_gone_ends_by_itself(place: Project, is_made_anew: bool) -> None:
    run = runs.start("rehearse", LONG, place)
    pid = run.current_state().pid
    shutil.rmtree(run.folder)
    if is_made_anew:  # by a save that was being written
        (run.folder / "checkpoints").mkdir(parents=True)
    wait_for(lambda: identity(pid) == "")


@pytest.mark.parametrize("wish", [b"", b"\xff\xfe", b"please"])
def test_a_stop_file_of_any_content_saves(place: Project, wish: bytes) -> None:
    run = runs.start("rehearse", LONG, place)
    run.stop_file.write_bytes(wish)
    assert ended(run) is Status.STOPPED
    assert run.current_state().message == "Stopped and saved."


@pytest.mark.slow
def test_a_page_that_dies_before_its_run_says_who_it_is_leaves_one_run(place: Project) -> None:
    spawn_and_die = (
        "import os, sys\nfrom pathlib import Path\nfrom utils.runs import run as runs\n"
        "from utils.config import RehearsalConfig\nfrom utils.core.paths import Project\n"
        "place = Project(Path(sys.argv[1]))\nruns.make_folder(place.runs)\n"
        "new = runs._create('rehearse', RehearsalConfig(seconds=60), place)\n"
        "runs.start_detached(['-m', 'utils', 'work', str(new.folder)], new.log)\nos._exit(1)\n"
    )
    subprocess.run([sys.executable, "-c", spawn_and_die, str(place.root)], cwd=ROOT, check=False)
    run = runs.start("rehearse", LONG, place)
    wait_for(lambda: run.current_state().status is Status.RUNNING)
    assert runs.list_runs(place) == [run]


def test_a_log_that_cannot_be_written_fails_the_run_at_once(place: Project) -> None:
    run = runs.start("rehearse", SHORT, place)
    assert ended(run) is Status.FINISHED
    run.log.unlink()
    run.log.mkdir()
    with pytest.raises(StorageError, match=r"log\.txt"):
        runs.resume(run)
    assert run.current_state().status is Status.FAILED


@pytest.mark.slow
def test_a_run_is_not_resumed_beside_another_of_its_kind(place: Project) -> None:
    first = runs.start("rehearse", LONG, place)
    runs.stop_now(first)
    second = runs.start("rehearse", LONG, place)
    with pytest.raises(RunBusyError, match=second.name):
        runs.resume(first)
    assert first.current_state().status is Status.STOPPED


@pytest.mark.slow
def test_a_full_disk_keeps_no_run_alive(small_disk: Path) -> None:
    place = Project(small_disk / "project")
    run = runs.start("rehearse", RehearsalConfig(seconds=60, ticks_per_second=2), place)
    pid = run.current_state().pid
    fill(small_disk)
    assert runs.stop_now(run).status not in runs.ACTIVE
    assert identity(pid) == ""


@pytest.mark.slow
def test_bad_settings_in_the_folder_fail_with_a_sentence(place: Project) -> None:
    run = runs.start("rehearse", SHORT, place)
    assert ended(run) is Status.FINISHED
    run.config.write_text("seconds: -1\n", encoding="utf-8")
    runs.resume(run)
    assert ended(run) is Status.FAILED
    assert "seconds: -1 should be greater" in run.current_state().message


def test_a_child_that_cannot_start_is_an_error_that_names_the_log(place: Project) -> None:
    with pytest.raises(RunError, match=r"did not start.*log\.txt"):
        runs.start("no-such-verb", SHORT, place)
    (run,) = runs.list_runs(place)
    assert run.current_state().status is Status.FAILED
    assert "no_such_verb" in run.log.read_text(encoding="utf-8")


def test_nothing_is_started_on_a_full_disk(small_disk: Path) -> None:
    place = Project(small_disk / "project")
    place.runs.mkdir(parents=True)
    fill(small_disk)
    with pytest.raises(StorageError, match="No space left"):
        runs.start("rehearse", SHORT, place)
    assert runs.list_runs(place) == []


def test_a_disk_that_fills_up_leaves_a_readable_state(small_disk: Path) -> None:
    place = Project(small_disk / "project")
    run = runs.start("rehearse", RehearsalConfig(seconds=60, ticks_per_second=100), place)
    wait_for(lambda: len(steps(run)) >= 3)
    fill(small_disk)
    wait_for(lambda: run.current_state().status not in runs.ACTIVE)
    assert run.current_state().status in {Status.FAILED, Status.LOST}
    assert run.read_state().verb == "rehearse"
    assert kinds(run)[0] == "started"


def fill(disk: Path) -> None:
    with (disk / "ballast").open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 512):
            pass


def test_a_run_is_found_by_name_only_inside_the_project(place: Project) -> None:
    run = runs.start("rehearse", SHORT, place)
    assert runs.find_run(place, run.name) == run
    with pytest.raises(RunError, match="There is no run 'other'"):
        runs.find_run(place, "other")
    with pytest.raises(StorageError):
        runs.find_run(place, "../project")


def test_runs_are_found_by_what_they_do_and_whether_they_are_at_work(place: Project) -> None:
    states = {"train": Status.RUNNING, "prepare": Status.RUNNING, "rehearse": Status.FINISHED}
    for number, (verb, status) in enumerate(states.items()):
        run = Run(place.runs / f"2026010{number}-120000-{verb}")
        run.folder.mkdir(parents=True)
        run.write_state(
            State(verb, status, created=1.0, pid=os.getpid(), identity=identity(os.getpid()), machine=machine())
        )
    assert [run.verb for run in runs.list_runs(place)] == ["rehearse", "prepare", "train"]
    assert [run.verb for run in runs.list_runs(place, "train", "rehearse")] == ["rehearse", "train"]
    found = [runs.active_run(place, *verbs) for verbs in ((), ("train",), ("rehearse",))]
    assert [run and run.verb for run in found] == ["prepare", "train", None]


def test_a_state_from_a_later_version_is_read(place: Project) -> None:
    run = fake(place, working(status=Status.FINISHED))
    text = run.state_file.read_text(encoding="utf-8").replace("{", '{"colour": "red",', 1)
    run.state_file.write_text(text, encoding="utf-8")
    assert run.current_state().status is Status.FINISHED
