"""kill -9 while a dataset is built, at every touch of the disk: what is there is whole, and the next build goes on."""

import multiprocessing
import os
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import soundfile

from tests.dataset.building import SETTINGS, built, recordings
from utils.core.errors import DataError
from utils.core.paths import Project
from utils.dataset.clip import ScanResult, Source
from utils.dataset.metadata import HEADER, list_files, read_list
from utils.dataset.store import Store
from utils.dataset.text_files import read_listing

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL and fork")]
TOUCHES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree")


def build_in_child(scan: ScanResult, project: Project, kill_at: int, counted: Path | None = None) -> int | None:
    """Build in a fork of this process, which kills itself when it touches the dataset for the n-th time."""
    child = multiprocessing.get_context("fork").Process(target=build_until, args=(scan, project, kill_at, counted))
    child.start()
    child.join()
    return child.exitcode


def build_until(scan: ScanResult, project: Project, kill_at: int, counted: Path | None) -> None:
    touched, connect = 0, sqlite3.connect

    def touch(*_: object) -> None:
        nonlocal touched
        touched += 1
        if touched == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event in TOUCHES and str(arguments[0]).startswith(str(project.root)):
            touch()

    def traced(*arguments: Any, **more: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **more)
        connection.set_trace_callback(touch)  # before each statement
        return connection

    sys.addaudithook(watch)
    sqlite3.connect = traced  # type: ignore[assignment]  # this process ends here
    built(scan, project)
    if counted:
        counted.write_text(str(touched))


def read_whole(project: Project) -> dict[str, Source]:
    """Check that whatever is there can be read; return the finished recordings."""
    contents = Store(project.dataset).read()
    for clip in contents.clips.values():
        assert soundfile.info(project.dataset / clip.audio).duration == pytest.approx(clip.span.seconds, abs=0.01)
    try:
        lists = list_files(project.dataset)
    except DataError:  # killed before the first list
        return contents.recordings
    for path in lists:
        assert path.read_text(encoding="utf-8").startswith(f"{HEADER}\n")
        assert read_listing(path).problems == []
        assert all(row.path.is_file() for row in read_list(path))
    return contents.recordings


def test_a_build_can_be_killed_wherever_it_touches_the_disk(tmp_path: Path) -> None:
    scan = recordings(tmp_path / "in", 2, seconds=10)
    undisturbed, counted = Project(tmp_path / "undisturbed"), tmp_path / "points"
    build_in_child(scan, undisturbed, kill_at=0, counted=counted)
    expected, points = Store(undisturbed.dataset).read().clips, int(counted.read_text())
    assert points > 40
    for point in range(1, points + 1):
        project = Project(tmp_path / f"killed-{point}")
        assert build_in_child(scan, project, point) == -signal.SIGKILL, point
        finished = read_whole(project)
        written = {path: path.stat().st_mtime_ns for path in (project.dataset / "wavs").glob("*.wav")}
        report = built(scan, project)
        assert (report.added, report.known) == (2 - len(finished), len(finished))
        assert Store(project.dataset).read().clips == expected
        read_whole(project)
        assert not [path for path in project.dataset.rglob(".*") if path.name.startswith(".saving")]
        untouched = [path for path in written if path.name.partition("-")[0] in finished]
        assert all(path.stat().st_mtime_ns == written[path] for path in untouched)


def test_a_pool_that_is_killed_at_any_time_leaves_no_process_and_goes_on(tmp_path: Path) -> None:
    project, scan = Project(tmp_path / "project"), recordings(tmp_path / "in", 8, seconds=20)
    two = SETTINGS.model_copy(update={"workers": 2})
    finished: dict[str, Source] = {}
    for pause in (0.5, 1.0, 1.5, 2.0, 2.5):
        process = multiprocessing.get_context("fork").Process(target=built, args=(scan, project, two))
        process.start()
        time.sleep(pause)
        while pause == 2.5 and not Store(project.dataset).read().recordings and process.is_alive():
            time.sleep(0.05)  # on a slow machine none of the pauses was long enough for a recording
        children = psutil.Process(process.pid).children(recursive=True) if process.is_alive() else []
        process.kill()
        process.join()
        _, alive = psutil.wait_procs(children, timeout=5)
        assert not alive
        later = read_whole(project)
        assert finished.items() <= later.items()
        finished = later
    assert finished
    assert len(built(scan, project).contents.recordings) == 8
