"""Faults are injected into a real training and counted; a loss is reported and ends with exit code 1."""

import io
import json
import random
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tests.soak import __main__, faults
from tests.soak.__main__ import FaultCount, inject_faults
from tests.soak.faults import fill
from tests.soak.mounting import NotHere
from tests.soak.subject import Lost, Subject
from utils.core.errors import StorageError
from utils.runs import MAX_MESSAGE, Run, State, Status
from utils.runs.job import Job

OUTCOMES = {"lost": Lost("update 4 is gone"), "impossible": NotHere("no mount"), "ctrl-c": KeyboardInterrupt()}


def pretend(fault: str, subject: Subject, _rng: random.Random) -> None:
    if fault in OUTCOMES:
        raise OUTCOMES[fault]


def test_losses_survivals_and_skipped_faults_are_counted_even_after_ctrl_c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "inject", pretend)
    survived, lost, skipped = counts = [FaultCount(name) for name in ("survived", "lost", "impossible")]
    inject_faults(tmp_path / "all", 1.0, 1, counts)
    assert (survived.survived, lost.survived) == (survived.injected, 0)
    assert len(lost.losses) == lost.injected > 0
    assert "update 4 is gone" in lost.losses[0]
    assert (skipped.injected, skipped.skipped) == (0, "no mount")
    before = FaultCount("survived")
    with pytest.raises(KeyboardInterrupt):
        inject_faults(tmp_path / "some", 1e9, 1, [before, FaultCount("ctrl-c")])
    assert before.injected == before.survived


@pytest.mark.slow
def test_a_training_survives_the_worst_damage_of_its_files(tmp_path: Path) -> None:
    count = FaultCount("resume state and newest checkpoint damaged")
    inject_faults(tmp_path, 0.1, 3, [count])
    assert (count.injected, count.losses) == (1, [])


@pytest.mark.slow
def test_the_command_reports_a_loss_and_ends_with_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.soak.fuzzing.FORMATS", ())
    monkeypatch.setattr(faults, "inject", pretend)
    for fault, code in (("survived", 0), ("lost", 1)):
        monkeypatch.setattr(faults, "FAULTS", [fault])
        folder = tmp_path / fault
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
