"""A run that is killed at any moment, also in the middle of a save, goes on to exactly where it would have come."""

import gc
import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.training.running import events, go_on, same, settings, weights
from utils.amharic import lexicon
from utils.config import TrainConfig
from utils.core.paths import Project
from utils.runs import Run, create
from utils.xtts import checkpoints

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.skipif(sys.platform == "win32", reason="forks")]

KILLS = 10
UPDATES = 30
PATIENCE = 120.0  # seconds that a child may take on a busy machine


def begun(run: Run, config: TrainConfig) -> int:
    """Train in a forked child, which has imported everything already; return its process number."""
    import torch

    from utils.gpt_train import train

    lexicon.words()
    gc.freeze()  # no child looks for garbage in what they all share
    if child := os.fork():
        return child
    try:
        torch.set_num_threads(1)
        with run.log.open("ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            go_on(run, train, config)
            os._exit(0)
    finally:
        os._exit(1)


def wait_for_update(run: Run, more_than: int) -> None:
    """Wait until a child has come further than its predecessors."""
    deadline = time.monotonic() + PATIENCE
    while len(events(run, "train")) <= more_than:
        assert time.monotonic() < deadline, run.log.read_text()[-2000:]
        time.sleep(0.01)


def test_a_run_killed_again_and_again_ends_with_the_weights_of_one_that_was_not(tmp_path: Path, dataset: Path) -> None:
    # in a fresh process: one in which others have trained cannot fork
    apart = multiprocessing.get_context("spawn").Process(target=kill_and_compare, args=(tmp_path, dataset))
    apart.start()
    apart.join()
    assert apart.exitcode == 0


def kill_and_compare(folder: Path, dataset: Path) -> None:
    """Train with and without kills, and compare what came of it."""
    dice = random.Random(0)
    config = settings(folder, dataset, max_steps=UPDATES, save_step=2, save_n_checkpoints=2, eval_step=7)
    run = create("train", config, Project(folder))
    for _ in range(KILLS):
        child = begun(run, config)
        wait_for_update(run, len(events(run, "train")))
        time.sleep(dice.uniform(0, 0.4))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert [one.error for one in checkpoints.list_checkpoints(run.folder) if one.error] == []
    assert finished(begun(run, config)), run.log.read_text()[-2000:]

    calm_settings = settings(folder / "calm", dataset, max_steps=UPDATES, save_step=2, eval_step=7)
    calm = create("train", calm_settings, Project(folder / "calm"))
    assert finished(begun(calm, calm_settings)), calm.log.read_text()[-2000:]
    assert same(weights(run), weights(calm))
    assert events(run, "train")[-1]["step"] == UPDATES


def finished(child: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
