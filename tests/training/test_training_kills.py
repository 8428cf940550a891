"""A run that is killed at any moment, also in the middle of a save, ends with exactly the same weights."""

import gc
import importlib
import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.training.running import events, resume, same, settings, weights
from tests.waiting import wait_for
from utils.amharic import lexicon
from utils.config import TrainConfig
from utils.studio.paths import Project
from utils.studio.runs import Run, create
from utils.xtts import checkpoints

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.skipif(sys.platform == "win32", reason="forks")]

FEW, KILLS = 6, 24  # docs/TRAINING.md names the second
UPDATES = 5  # for each kill; more than it leaves time for on a fast machine
PATIENCE = 120.0  # seconds that a child may take on a busy machine


def start_child(run: Run, config: TrainConfig) -> int:
    """Train in a forked child and return its process number."""
    if child := os.fork():
        return child
    try:
        torch.set_num_threads(1)
        with run.log.open("ab") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
            resume(run, config)
            os._exit(0)
    finally:
        os._exit(1)


def wait_for_next_update(run: Run) -> None:
    before = len(events(run, "train"))
    wait_for(lambda: len(events(run, "train")) > before, PATIENCE, run.log.read_text)


@pytest.mark.parametrize("kills", [FEW, pytest.param(KILLS, marks=pytest.mark.long)])
def test_a_run_killed_many_times_ends_with_the_weights_of_an_uninterrupted_one(
    tmp_path: Path, dataset: Path, kills: int
) -> None:
    # in a fresh process: one in which others have trained cannot fork
    process = multiprocessing.get_context("spawn").Process(target=kill_and_compare, args=(tmp_path, dataset, kills))
    process.start()
    process.join()
    assert process.exitcode == 0


def kill_and_compare(folder: Path, dataset: Path, kills: int) -> None:
    importlib.import_module("utils.gpt_train")  # each child then has everything
    lexicon.stems()
    gc.freeze()  # no child looks for garbage in what they all share
    dice, updates = random.Random(0), UPDATES * kills
    config = settings(folder, dataset, max_steps=updates, save_step=2, save_n_checkpoints=2, eval_step=7)
    run = create("train", config, Project(folder))
    for _ in range(kills):
        child = start_child(run, config)
        wait_for_next_update(run)
        time.sleep(dice.uniform(0, 0.4))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert not any(checkpoint.error for checkpoint in checkpoints.list_checkpoints(run.folder))
    assert has_finished(start_child(run, config)), run.log.read_text()[-2000:]

    plain_config = settings(folder / "plain", dataset, max_steps=updates, save_step=2, eval_step=7)
    plain = create("train", plain_config, Project(folder / "plain"))
    assert has_finished(start_child(plain, plain_config)), plain.log.read_text()[-2000:]
    assert same(weights(run), weights(plain))
    assert events(run, "train")[-1]["step"] == updates


def has_finished(child: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
