"""Worker processes make what one process makes."""

import itertools
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.dataset.building import SETTINGS, built, die_on_talk1, everything, recordings
from utils.config import DatasetConfig
from utils.core.facts import Progress, Stop, StopRequested
from utils.dataset.clip import Recording, ScanResult
from utils.dataset.store import Store
from utils.studio.paths import Project

pytestmark = pytest.mark.slow

PROCESSES = SETTINGS.model_copy(update={"workers": 2})


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def test_processes_make_the_same_dataset(project: Project, tmp_path: Path) -> None:
    broken = Recording(tmp_path / "broken.wav", "s", "ሰላም")
    broken.path.write_bytes(b"no sound")
    scan = ScanResult((*recordings(tmp_path / "in", 4).recordings, broken))
    other = Project(tmp_path / "other")
    local = built(scan, other, SETTINGS.model_copy(update={"segmenter": "vad"}))
    report = built(scan, project, PROCESSES.model_copy(update={"segmenter": "vad"}))
    assert everything(project) == everything(other)
    assert len(report.contents.kept) >= 4
    assert (report.prepared.added, report.bad) == (4, local.bad)
    assert [fact.percent for fact in report.facts if isinstance(fact, Progress)][-1] == 100.0


def test_the_time_left_does_not_count_the_check_of_texts(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = itertools.count()
    monkeypatch.setattr("utils.dataset.prepare.time", Mock(monotonic=lambda: next(seconds)))
    monkeypatch.setattr(
        "utils.dataset.text_check.learn", lambda *_, **__: [next(seconds) for _ in range(10_000)] and None
    )
    report = built(recordings(tmp_path / "in", 4), project, SETTINGS.model_copy(update={"check_texts": True}))
    left = [fact.seconds_left for fact in report.facts if isinstance(fact, Progress)]
    assert 0 < max(filter(None, left)) < 10_000


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_worker_that_dies_loses_only_its_recording(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("utils.dataset.prepare.make_clips", die_on_talk1)
    report = built(recordings(tmp_path / "in", 3), project, PROCESSES)
    (problem,) = report.bad
    assert (report.prepared.added, problem.path.name) == (2, "talk1.wav")
    assert "crashed" in str(problem.reason)


@pytest.mark.parametrize("settings", [SETTINGS, PROCESSES], ids=["serial", "processes"])
def test_a_stopped_build_continues(project: Project, tmp_path: Path, settings: DatasetConfig) -> None:
    scan = recordings(tmp_path / "in", 4)

    def stop_after_the_first() -> Stop:
        return Stop.SAVE if Store(project.dataset).read().recordings else Stop.NO

    with pytest.raises(StopRequested):
        built(scan, project, settings, should_stop=stop_after_the_first)
    finished = len(Store(project.dataset).read().recordings)
    assert 0 < finished < 4
    report = built(scan, project, settings)
    assert (report.prepared.added, report.prepared.known) == (4 - finished, finished)
