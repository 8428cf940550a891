"""Faults are injected into a real training and counted; a loss is reported and ends with exit code 1."""

import io
import json
import random
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tests.soak import __main__, campaign
from tests.soak.campaign import FaultCount, soak
from tests.soak.disks import fill
from tests.soak.mounting import NotHere
from tests.soak.subject import Lost, Subject
from utils.core.errors import StorageError
from utils.runs import MAX_MESSAGE, Run, State, Status
from utils.runs.job import Job


def survived(subject: Subject, rng: random.Random) -> None:
    subject.check_clips()


def losing(subject: Subject, rng: random.Random) -> None:
    raise Lost("update 4 is gone")


def impossible(subject: Subject, rng: random.Random) -> None:
    raise NotHere("no permission to mount")


def interrupted(subject: Subject, rng: random.Random) -> None:
    raise KeyboardInterrupt


def test_losses_survivals_and_skipped_faults_are_counted_even_after_ctrl_c(tmp_path: Path) -> None:
    faults = {"survived": survived, "losing": losing, "impossible": impossible}
    counts = [FaultCount(name) for name in faults]
    soak(tmp_path / "all", 1.0, 1, counts, faults)
    assert (counts[0].survived, counts[1].survived) == (counts[0].injected, 0)
    assert counts[1].lost == counts[1].injected > 0
    assert "update 4 is gone" in counts[1].losses[0]
    assert (counts[2].injected, counts[2].skipped) == (0, "no permission to mount")
    before = FaultCount("survived")
    with pytest.raises(KeyboardInterrupt):
        soak(tmp_path / "some", 1e9, 1, [before, FaultCount("ctrl-c")], {"survived": survived, "ctrl-c": interrupted})
    assert before.injected == before.survived


@pytest.mark.slow
def test_a_training_survives_the_worst_damage_of_its_files(tmp_path: Path) -> None:
    count = FaultCount("resume state and newest checkpoint damaged")
    soak(tmp_path, 0.1, 3, [count], campaign.FAULTS)
    assert (count.injected, count.losses) == (1, [])


@pytest.mark.slow
def test_the_command_reports_a_loss_and_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.soak.readers.FORMATS", ())
    monkeypatch.setattr("tests.soak.specimens.write_all", lambda folder: folder)
    for fault, code in ((survived, 0), (losing, 1)):
        monkeypatch.setattr(campaign, "FAULTS", {"it": fault})
        folder = tmp_path / fault.__name__
        assert __main__.main(["--minutes", "0.001", "--fuzz", "0", "--seed", "1", "--output", str(folder)]) == code
        assert (json.loads((folder / __main__.FILE).read_text())["lost"] > 0) == bool(code)


@pytest.mark.parametrize("message", ["The disk is full.", "ዲስኩ ሞልቷል።" * 1000])
def test_a_run_reports_its_end_on_a_full_disk(small_disk: Path, message: str) -> None:
    run = Run(small_disk / "1-1-train")
    run.folder.mkdir()
    run.write_state(State("train", Status.STARTING, time.time()))
    log = io.TextIOWrapper(run.log.open("wb", buffering=0), write_through=True)
    with log, redirect_stdout(log), redirect_stderr(log), Job(run):
        fill(small_disk, 0)
        raise StorageError(message)
    state = run.current_state()
    assert (state.status, state.message) == (Status.FAILED, message[:MAX_MESSAGE])
