"""A run that ends on a full disk says so all the same: its state has room where it lies."""

import io
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tests.soak.disks import fill
from utils.core.errors import StorageError
from utils.runs import MAX_MESSAGE, Run, State, Status
from utils.runs.job import Job


@pytest.mark.parametrize("message", ["The disk is full.", "ዲስኩ ሞልቷል።" * 1000])
def test_a_run_tells_its_end_on_a_full_disk(small_disk: Path, message: str) -> None:
    run = Run(small_disk / "1-1-train")
    run.folder.mkdir()
    run.write_state(State("train", Status.STARTING, time.time()))
    log = io.TextIOWrapper(run.log.open("wb", buffering=0), write_through=True)
    with log, redirect_stdout(log), redirect_stderr(log), Job(run):
        fill(small_disk, 0)
        raise StorageError(message)
    state = run.current_state()
    assert (state.status, state.message) == (Status.FAILED, message[:MAX_MESSAGE])
