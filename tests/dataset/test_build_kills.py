"""kill -9 while a dataset is built, at every touch of the disk: what is there is whole, and the next build goes on."""

import multiprocessing
import sys
import time
from pathlib import Path

import psutil
import pytest
import soundfile

from tests.dataset.building import SETTINGS, built, recordings
from tests.killing import kill_everywhere, rerun_alone
from utils.core.errors import DataError
from utils.dataset.clip import Source
from utils.dataset.metadata import HEADER, list_files, read_list
from utils.dataset.store import Store
from utils.dataset.text_files import read_listing
from utils.studio.paths import Project

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL and fork")]


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


@pytest.mark.long
def test_a_build_can_be_killed_wherever_it_touches_the_disk(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if rerun_alone(request):
        return
    scan = recordings(tmp_path / "in", 2, seconds=7)
    for folder in kill_everywhere(tmp_path, Path.mkdir, lambda folder: built(scan, Project(folder)), minimum=40):
        project, expected = Project(folder), Store(Project(tmp_path / "undisturbed").dataset).read().clips
        finished = read_whole(project)
        written = {path: path.stat().st_mtime_ns for path in (project.dataset / "wavs").glob("*.wav")}
        report = built(scan, project)
        assert (report.prepared.added, report.prepared.known) == (2 - len(finished), len(finished))
        assert Store(project.dataset).read().clips == expected != {}
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
        assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
        later = read_whole(project)
        assert finished.items() <= later.items()
        finished = later
    assert finished
    assert len(built(scan, project).contents.recordings) == 8
