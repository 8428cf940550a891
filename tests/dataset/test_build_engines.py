"""Worker processes, and a Ray of this machine with two workers, make what one process makes."""

import signal
import socket
import sys
from pathlib import Path

import pytest

from tests.dataset.building import SETTINGS, built, die_on_talk1, ignore, recordings
from utils.config import DatasetConfig
from utils.core.errors import ConfigError
from utils.core.paths import Project
from utils.dataset.build import build
from utils.dataset.clip import Recording, ScanResult
from utils.dataset.store import Store
from utils.runs.job import StopRequested

pytestmark = pytest.mark.slow

PROCESSES = SETTINGS.model_copy(update={"workers": 2})
RAY = SETTINGS.model_copy(update={"workers": 2, "engine": "ray"})


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    pytest.importorskip("ray", reason="ray is optional: pip install ray")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return Project(tmp_path / "project")


def dataset(project: Project) -> tuple[object, ...]:
    """Everything but the order of rows, which is that of finishing."""
    folder = project.dataset
    lists = {path.name: sorted(path.read_bytes().splitlines()) for path in folder.glob("metadata_*.csv")}
    wavs = {path.name: path.read_bytes() for path in folder.glob("wavs/*")}
    return Store(folder).read().clips, lists, wavs, (folder / "lang.txt").read_bytes()


@pytest.mark.parametrize("settings", [PROCESSES, RAY], ids=["processes", "ray"])
def test_every_engine_makes_the_same_dataset_and_reports_progress(
    project: Project, tmp_path: Path, settings: DatasetConfig
) -> None:
    broken = Recording(tmp_path / "broken.wav", "s", "ሰላም")
    broken.path.write_bytes(b"no sound")
    scan = ScanResult((*recordings(tmp_path / "in", 4).recordings, broken))
    other, shares = Project(tmp_path / "other"), []

    def emit(kind: str, **fields: object) -> None:
        if kind == "progress":
            shares.append(fields["percent"])

    local = built(scan, other, SETTINGS.model_copy(update={"segmenter": "vad"}))
    handler = signal.getsignal(signal.SIGTERM)
    report = build(scan, project, settings.model_copy(update={"segmenter": "vad"}), emit)
    assert dataset(project) == dataset(other)
    assert len(report.contents.kept) >= 4
    assert (report.added, report.bad) == (4, local.bad)
    assert shares[-1] == 100.0
    assert signal.getsignal(signal.SIGTERM) is handler


@pytest.mark.parametrize("settings", [SETTINGS, PROCESSES], ids=["serial", "processes"])
def test_a_stopped_build_continues(project: Project, tmp_path: Path, settings: DatasetConfig) -> None:
    scan = recordings(tmp_path / "in", 4)

    def stop_after_the_first() -> None:
        if Store(project.dataset).read().recordings:
            raise StopRequested("save")

    with pytest.raises(StopRequested):
        build(scan, project, settings, ignore, check_stop=stop_after_the_first)
    finished = len(Store(project.dataset).read().recordings)
    assert 0 < finished < 4
    report = built(scan, project, settings)
    assert (report.added, report.known) == (4 - finished, finished)


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
@pytest.mark.parametrize("settings", [PROCESSES, RAY], ids=["processes", "ray"])
def test_a_worker_that_dies_loses_only_its_recording(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: DatasetConfig
) -> None:
    monkeypatch.setattr("utils.dataset.build.make_clips", die_on_talk1)
    report = built(recordings(tmp_path / "in", 3), project, settings)
    (problem,) = report.bad
    assert (report.added, problem.path.name) == (2, "talk1.wav")
    assert "crashed" in problem.sentence


def test_a_missing_ray_is_an_error_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match="not installed") as caught:
        built(recordings(tmp_path / "in", 1), Project(tmp_path / "project"), RAY)
    assert "pip install ray" in caught.value.hint


def test_a_cluster_that_does_not_answer_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # bound and not listening: refused at once
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{deaf.getsockname()[1]}")
        with pytest.raises(ConfigError, match=r"Ray does not start \(127\.0\.0\.1:"):
            built(recordings(tmp_path / "in", 1), Project(tmp_path / "project"), RAY)
