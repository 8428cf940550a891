"""kill -9 while a dataset is built, at every touch of the disk: what is there is whole, and it goes on."""

import multiprocessing
import os
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
import soundfile

from tests.dataset.building import SETTINGS, built, recordings
from utils.core.errors import DataError
from utils.core.paths import Project
from utils.dataset.clip import ScanResult
from utils.dataset.metadata import list_files, read_list
from utils.dataset.records import Source
from utils.dataset.store import Store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL and fork")
TOUCHES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "shutil.rmtree")


class Expected(NamedTuple):
    """The dataset that a build without interruption makes, and how often it touches the disk."""

    found: ScanResult
    clips: dict[str, object]
    points: int


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    folder = tmp_path_factory.mktemp("whole")
    found = recordings(folder / "in", 3, seconds=15)
    place = Project(folder / "project")
    counted = folder / "points"
    in_child(found, place, kill_at=0, counted=counted)
    return Expected(found, dict(Store(place.dataset).read().clips), int(counted.read_text()))


def in_child(found: ScanResult, place: Project, kill_at: int, counted: Path | None = None) -> int | None:
    """Build in a fork of this process, which kills itself when it touches the dataset for the n-th time."""
    child = multiprocessing.get_context("fork").Process(target=build_until, args=(found, place, kill_at, counted))
    child.start()
    child.join()
    return child.exitcode


def build_until(found: ScanResult, place: Project, kill_at: int, counted: Path | None) -> None:
    touched, connect = 0, sqlite3.connect

    def touch() -> bool:
        nonlocal touched
        touched += 1
        return touched == kill_at

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if event in TOUCHES and str(arguments[0]).startswith(str(place.root)) and touch():
            os.kill(os.getpid(), signal.SIGKILL)

    def die(_: str) -> None:
        if touch():
            os.kill(os.getpid(), signal.SIGKILL)

    def traced(*arguments: Any, **more: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **more)
        connection.set_trace_callback(die)  # before each statement
        return connection

    sys.addaudithook(watch)
    sqlite3.connect = traced  # type: ignore[assignment]  # this process ends here
    built(found, place)
    if counted:
        counted.write_text(str(touched))


def assert_whole(place: Project) -> dict[str, Source]:
    """Check that whatever is there can be read; return the finished recordings."""
    contents = Store(place.dataset).read()
    for clip in contents.clips.values():
        assert soundfile.info(place.dataset / clip.audio).duration == pytest.approx(clip.span.seconds, abs=0.01)
    try:
        lists = list_files(place.dataset)
    except DataError:  # killed before the first list
        return contents.recordings
    for row in (row for path in lists for row in read_list(path)):
        assert not row.fault
        assert row.path.is_file()
    return contents.recordings


@pytest.mark.slow
def test_a_build_can_be_killed_wherever_it_touches_the_disk(expected: Expected, tmp_path: Path) -> None:
    assert expected.points > 40
    for point in range(1, expected.points + 1):
        place = Project(tmp_path / f"killed-{point}")
        assert in_child(expected.found, place, point) == -signal.SIGKILL, point
        finished = assert_whole(place)
        written = {path: path.stat().st_mtime_ns for path in (place.dataset / "wavs").glob("*.wav")} if finished else {}
        report = built(expected.found, place)
        assert (report.added, report.known) == (3 - len(finished), len(finished))
        assert Store(place.dataset).read().clips == expected.clips
        assert_whole(place)
        assert not [path for path in place.dataset.rglob(".*") if path.name.startswith(".saving")]
        untouched = [path for path in written if path.name.partition("-")[0] in finished]
        assert all(path.stat().st_mtime_ns == written[path] for path in untouched)


def has_a_recording(place: Project) -> bool:
    return bool(Store(place.dataset).read().recordings)


@pytest.mark.slow
def test_a_pool_that_is_killed_at_any_time_leaves_no_process_and_goes_on(tmp_path: Path) -> None:
    place, found = Project(tmp_path / "project"), recordings(tmp_path / "in", 12, seconds=30)
    two = SETTINGS.model_copy(update={"workers": 2})
    finished: dict[str, Source] = {}
    rounds = 12
    for number in range(rounds):
        process = multiprocessing.get_context("fork").Process(target=built, args=(found, place, two))
        process.start()
        time.sleep(0.5 + 0.25 * number)
        while number == rounds - 1 and not has_a_recording(place) and process.is_alive():
            time.sleep(0.05)  # on a slow machine none of the pauses was long enough for a recording
        children = psutil.Process(process.pid).children(recursive=True) if process.is_alive() else []
        process.kill()
        process.join()
        _, alive = psutil.wait_procs(children, timeout=5)
        assert not alive
        later = assert_whole(place)
        assert finished.items() <= later.items()
        finished = later
    report = built(found, place, SETTINGS)
    assert len(report.contents.recordings) == 12
    assert len(finished) > 0
