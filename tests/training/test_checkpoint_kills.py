"""kill -9 at every touch of the disk while a run saves: what is on disk is intact."""

import sys
from pathlib import Path

import pytest
import torch

from tests.killing import kill_everywhere
from utils.training import resume_state
from utils.training.resume_state import Snapshot
from utils.xtts import checkpoints
from utils.xtts.checkpoints import CheckpointInfo

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL and fork")]


def state(update: int) -> dict[str, torch.Tensor]:
    return {f"gpt.{name}": torch.full((100,), float(update)) for name in "abc"}


def save(run: Path, update: int) -> None:
    optimizer = {"state": {0: {"step": torch.tensor(float(update)), "exp_avg": torch.full((100,), float(update))}}}
    guards = {"rolled_back": update}
    resume_state.save(run / "resume", Snapshot(update, state(update), optimizer, ema=state(update), guards=guards))


def publish(run: Path, step: int) -> None:
    """Do what a run does after an evaluation that was better than all before."""
    info = CheckpointInfo(step=step, eval_loss=1 / step)
    checkpoints.write(run, state(step), info, fill=lambda folder: (folder / "vocab.json").write_text("{}"))
    checkpoints.mark_best(run, step)
    checkpoints.prune(run, keep=1)


def load_update(run: Path) -> int:
    """Read the state, check that all of it is of the same update, and return which."""
    saved = resume_state.load(run / "resume")
    first = saved.optimizer["state"][0]
    everything = [*saved.weights.values(), *(saved.ema or {}).values(), first["exp_avg"], first["step"]]
    assert all(bool((tensor == saved.update).all()) for tensor in everything)
    assert saved.guards == {"rolled_back": saved.update}
    assert [path.name for path in run.glob("*resume*")] == ["resume"]
    return saved.update


def list_steps(run: Path) -> list[int]:
    """List the checkpoints, check that each is whole and that the best is among them."""
    steps = []
    for checkpoint in checkpoints.list_checkpoints(run):
        assert not checkpoint.error
        assert checkpoint.info
        weights = checkpoints.read_state(checkpoint.folder)
        assert all(bool((weight == checkpoint.step).all()) for weight in weights.values())
        steps.append(checkpoint.step)
    assert checkpoints.best_step(run) in steps
    return steps


def test_a_save_can_be_killed_wherever_it_touches_the_disk(tmp_path: Path) -> None:
    reached = set()
    for run in kill_everywhere(tmp_path, lambda run: save(run, 1), lambda run: save(run, 2)):
        assert resume_state.can_resume(run / "resume")
        reached.add(load_update(run))
        save(run, 3)
        assert load_update(run) == 3
    assert reached == {1, 2}


def test_checkpoints_can_be_killed_wherever_they_touch_the_disk(tmp_path: Path) -> None:
    reached = set()
    for run in kill_everywhere(tmp_path, lambda run: publish(run, 2), lambda run: publish(run, 3)):
        reached.add(tuple(list_steps(run)))
        publish(run, 4)
        assert list_steps(run) == [4]
        assert {path.name for path in (run / "checkpoints").iterdir()} == {"step_4"}
    assert reached == {(2,), (3, 2), (3,)}


def between_renames(run: Path) -> None:
    """Leave what a kill between the two renames leaves."""
    save(run, 1)
    (run / "resume").rename(run / ".resume.old-1")
    save(run, 2)  # takes up the old one first
    (run / "resume").rename(run / ".resume.new-2")
    save(run / "other", 1)
    (run / "other" / "resume").rename(run / ".resume.old-1")


def test_a_run_can_be_killed_again_while_it_repairs_a_save(tmp_path: Path) -> None:
    for run in kill_everywhere(tmp_path, between_renames, lambda run: resume_state.load(run / "resume"), minimum=10):
        assert load_update(run) == 2
