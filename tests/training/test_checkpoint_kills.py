"""kill -9 at every touch of the disk while a run saves: what is on disk is intact."""

import io
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from utils.training import resume_state
from utils.training.resume_state import Snapshot
from utils.xtts import checkpoints
from utils.xtts.checkpoints import CheckpointInfo

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL and fork")]
TOUCHES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree")
Work = Callable[[Path], object]


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


class Killer:
    """Kills this process when it touches a folder for the n-th time: in the middle, where it is a write."""

    def __init__(self, folder: Path, kill_at: int) -> None:
        self.folder, self.kill_at, self.touched = str(folder), kill_at, 0
        self.open, self.sync = io.open, os.fsync

    def is_due(self) -> bool:
        self.touched += 1
        return self.touched == self.kill_at

    def touch(self) -> None:
        if self.is_due():
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in TOUCHES and isinstance(arguments[0], str | Path):
            path = str(arguments[0])
            if path.startswith(self.folder) or not Path(path).is_absolute():  # rmtree names files from their folder
                self.touch()

    def open_file(self, path: Any, mode: str = "r", buffering: int = -1, *rest: Any, **options: Any) -> Any:
        if (mode, buffering) != ("wb", 0):
            return self.open(path, mode, buffering, *rest, **options)
        return HalfWriting(path, self)

    def flush(self, descriptor: int) -> None:
        self.touch()
        self.sync(descriptor)


class HalfWriting(io.FileIO):
    """A file whose writer may die in the middle of a write."""

    def __init__(self, path: Path, killer: Killer) -> None:
        super().__init__(path, "w")
        self.killer = killer

    def write(self, content: Any) -> int:
        if self.killer.is_due():
            super().write(content[: len(content) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return super().write(content) or 0


def run_until_kill(run: Path, work: Work, kill_at: int) -> None:
    torch.set_num_threads(1)  # the threads of the parent did not come along
    killer = Killer(run, kill_at)
    sys.addaudithook(killer.watch)
    io.open = killer.open_file  # type: ignore[assignment]  # this process ends here
    os.fsync = killer.flush  # type: ignore[assignment]
    work(run)
    (run / "points").write_text(str(killer.touched))


def exit_code_of_child(run: Path, work: Work, kill_at: int) -> int | None:
    child = multiprocessing.get_context("fork").Process(target=run_until_kill, args=(run, work, kill_at))
    child.start()
    child.join()
    return child.exitcode


def kill_everywhere(folder: Path, prepare: Work, work: Work, minimum: int = 30) -> Iterator[Path]:
    """Prepare a run and kill the work on it at each touch of the disk, one after the other; yield what is left."""
    counting = folder / "counting"
    prepare(counting)
    assert exit_code_of_child(counting, work, 0) == 0
    points = int((counting / "points").read_text())
    assert points > minimum
    for point in range(1, points + 1):
        run = folder / f"killed-{point}"
        prepare(run)
        assert exit_code_of_child(run, work, point) == -signal.SIGKILL, point
        yield run


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
        assert {path.name for path in (run / "checkpoints").iterdir()} == {"step_4", "best.json"}
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
