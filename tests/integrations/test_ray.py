"""Ray makes the dataset of one process, also if its workers are killed."""

import contextlib
import dataclasses
import importlib.util
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from tests.dataset.building import (
    SETTINGS,
    SaysTheSame,
    built,
    die_on_talk1,
    die_once_on_talk1,
    double_slowly,
    everything,
    recordings,
    write_elsewhere,
)
from tests.recognition.tiny_whisper import make_whisper
from utils.core.errors import AmharicTtsError
from utils.core.paths import ROOT
from utils.dataset.clip import ScanResult
from utils.dataset.errors import StoreError
from utils.dataset.prepare import prepare
from utils.dataset.store import Store
from utils.integrations.ray import RayEngine
from utils.recognition.facts import RecogniserError
from utils.recognition.recognisers import RecogniserSpec
from utils.recognition.recognisers.isolated import IsolatedRecogniser
from utils.studio.facts import UsageError
from utils.studio.paths import Project

RAY = SETTINGS.model_copy(update={"engine": "ray", "workers": 2})

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@pytest.fixture(scope="module")
def cluster(client_port: int) -> Iterator[Any]:
    """Two machines with one worker each, as Ray's own tests have them."""
    pytest.importorskip("ray", reason="needs Ray: pip install ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "ray_client_server_port": client_port})
    cluster.add_node(num_cpus=1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ADDRESS", cluster.address)
        yield cluster
    cluster.shutdown()


@pytest.mark.usefixtures("cluster")
def test_a_killed_worker_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = recordings(tmp_path / "in", 4)
    alone, together = Project(tmp_path / "alone"), Project(tmp_path / "together")
    built(scan, alone)
    monkeypatch.setattr("utils.dataset.prepare.make_clips", die_once_on_talk1)
    report = built(scan, together, RAY)
    assert (tmp_path / "in" / "talk1.begun").exists()
    assert (report.prepared.added, report.bad) == (4, [])
    assert everything(together) == everything(alone)


def test_a_lost_machine_loses_nothing(cluster: Any) -> None:
    machines = [cluster.add_node(num_cpus=1)]
    begun = time.monotonic()

    def lose_a_machine(*_: object) -> None:
        if machines and time.monotonic() - begun > 4:  # each of the three works
            cluster.remove_node(machines.pop(), allow_graceful=False)

    with contextlib.closing(RayEngine(3)) as engine:
        results = [outcome.result for outcome in engine.run(double_slowly, range(1, 13), lose_a_machine)]
    assert not machines
    assert len(results) == 12
    assert set(results) == set(range(2, 26, 2))


@pytest.mark.usefixtures("cluster")
def test_a_recording_that_kills_every_worker_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("utils.dataset.prepare.make_clips", die_on_talk1)
    report = built(recordings(tmp_path / "in", 2), Project(tmp_path / "project"), RAY)
    (problem,) = report.bad
    assert (report.prepared.added, problem.path.name) == (1, "talk1.wav")


@pytest.mark.usefixtures("cluster")
def test_a_folder_that_is_not_shared_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in" / "wavs").mkdir(parents=True)
    monkeypatch.setattr("utils.dataset.prepare.make_clips", write_elsewhere)
    with pytest.raises(StoreError, match="another machine"):
        built(recordings(tmp_path / "in", 1), Project(tmp_path / "project"), RAY)


@pytest.mark.usefixtures("cluster")
def test_recognisers_on_the_cluster_write_what_one_writes_here(tmp_path: Path) -> None:
    scan = recordings(tmp_path / "in", 2)
    silent = ScanResult(tuple(dataclasses.replace(known, cues=()) for known in scan.recordings))
    model = make_whisper(tmp_path / "whisper")
    changes = {"recogniser": "whisper", "recogniser_model": str(model), "device": "cpu", "min_confidence": 0.0}
    alone, together = Project(tmp_path / "alone"), Project(tmp_path / "together")
    for project, settings in ((alone, SETTINGS), (together, RAY)):
        prepare(silent.recordings, project.dataset, settings.model_copy(update=changes))
    assert any(clip.text for clip in Store(alone.dataset).read().clips.values())
    assert everything(together) == everything(alone)


@pytest.mark.usefixtures("cluster")
def test_a_killed_recogniser_is_loaded_again(tmp_path: Path) -> None:
    sound = [np.sin(np.arange(16_000) * 0.1).astype(np.float32)]
    local = IsolatedRecogniser(RecogniserSpec(str(make_whisper(tmp_path / "whisper")), "cpu"))
    with contextlib.closing(RayEngine(2)) as engine:
        recogniser = engine.recogniser(local, 1)
        before = recogniser.transcribe(sound, "am")
        killed = list(recogniser_processes())
        for process in killed:
            process.kill()
        assert killed
        assert recogniser.transcribe(sound, "am") == before


@pytest.mark.usefixtures("cluster")
def test_a_recogniser_that_is_lost_for_good_is_named(tmp_path: Path) -> None:
    import ray

    local = IsolatedRecogniser(RecogniserSpec(str(make_whisper(tmp_path / "whisper")), "cpu"))
    with contextlib.closing(RayEngine(2)) as engine:
        recogniser = engine.recogniser(local, 1)
        for actor in recogniser.actors:
            ray.kill(actor)
        with pytest.raises(RecogniserError, match="actor died"):
            recogniser.transcribe([np.zeros(16_000, np.float32)], "am")


@pytest.mark.usefixtures("cluster")
def test_a_recogniser_that_cannot_be_sent_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="says the same"):
        built(recordings(tmp_path / "in", 1), Project(tmp_path / "project"), RAY, SaysTheSame())


def test_nothing_new_needs_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = recordings(tmp_path / "in", 1)
    built(scan, Project(tmp_path / "project"))
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert built(scan, Project(tmp_path / "project"), RAY).prepared.known == 1


def recogniser_processes() -> Iterator[psutil.Process]:
    for process in psutil.Process().children(recursive=True):
        if process.cmdline()[:1] == ["ray::RecogniserActor"]:
            yield process


@pytest.mark.usefixtures("cluster")
def test_a_cluster_is_reached_through_its_client_server(client_port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", f"ray://127.0.0.1:{client_port}")
    with contextlib.closing(RayEngine(0)) as engine:
        assert [outcome.result for outcome in engine.run(double_slowly, [3], lambda *_: None)] == [6]


def test_a_cluster_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="needs Ray: pip install ray")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(AmharicTtsError, match=r"127\.0\.0\.1:1"):
        RayEngine(1)


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray is installed")
def test_a_missing_package_is_named() -> None:
    command = [sys.executable, "-m", "utils", "prepare", "talk.wav", "--engine=ray"]
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install ray" in done.stderr
