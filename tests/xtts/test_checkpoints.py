"""Checkpoints of a run: written whole, listed with what is wrong with them, pruned and compared."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from utils.core.errors import DamagedError
from utils.xtts import checkpoints
from utils.xtts.checkpoints import CheckpointInfo, find, list_checkpoints, mark_best, prune, read_state, write
from utils.xtts.facts import CheckpointError


def state(value: float = 1.0, **more: Tensor) -> dict[str, Tensor]:
    return {"gpt.h.0.weight": torch.full((4, 4), value), "text_head.bias": torch.zeros(3), **more}


def add_vocabulary(folder: Path) -> None:
    (folder / "vocab.json").write_text("{}")


def write_steps(run: Path, *steps: int) -> None:
    for step in steps:
        write(run, state(step), CheckpointInfo(step=step), add_vocabulary)


def test_a_checkpoint_is_listed_with_all_that_was_written(tmp_path: Path) -> None:
    known = CheckpointInfo(step=5, epoch=0.5, eval_loss=2.5, time=1e9, base="b", is_average=True, settings={"lr": 1.0})
    folder = write(tmp_path, state(), known, add_vocabulary)
    (checkpoint,) = list_checkpoints(tmp_path)
    assert folder == checkpoint.folder == tmp_path / "checkpoints" / "step_5"
    assert (checkpoint.info, checkpoint.step, checkpoint.is_best, checkpoint.error) == (known, 5, False, None)
    assert checkpoint.size == sum(path.stat().st_size for path in folder.iterdir()) > 0
    assert {path.name for path in folder.iterdir()} == {"model.safetensors", "vocab.json", "checkpoint.json"}


def test_weights_are_stored_in_half_precision_if_they_fit(tmp_path: Path) -> None:
    wide = torch.tensor([1e6])
    model = read_state(write(tmp_path, state(wide=wide), CheckpointInfo(step=1)))
    kinds = {"gpt.h.0.weight": torch.float16, "text_head.bias": torch.float16, "wide": torch.float32}
    assert {name: weight.dtype for name, weight in model.items()} == kinds
    assert read_state(tmp_path / "checkpoints" / "step_1", torch.float32)["gpt.h.0.weight"].dtype == torch.float32


def spoil_step(folder: Path) -> None:
    path = folder / checkpoints.MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | {"about": {"step": "many"}}))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (
            lambda folder: (folder / checkpoints.MODEL).write_bytes(b"short"),
            "model.safetensors has changed since it was written",
        ),
        (lambda folder: (folder / checkpoints.MANIFEST).unlink(), "checkpoint.json is missing"),
        (spoil_step, "checkpoint.json has changed since it was written"),
    ],
)
def test_a_damaged_checkpoint_is_never_pruned(tmp_path: Path, damage: Callable[[Path], object], reason: str) -> None:
    write_steps(tmp_path, 1, 2)
    damage(tmp_path / "checkpoints" / "step_2")
    broken, whole = list_checkpoints(tmp_path)
    assert reason in str(broken.error)
    assert not whole.error
    with pytest.raises(DamagedError, match=reason):
        find(tmp_path, 2)
    assert find(tmp_path, "newest").step == 1
    assert prune(tmp_path, keep=1) == []
    assert (tmp_path / "checkpoints" / "step_2").exists()


@pytest.mark.parametrize(
    ("keep", "best", "left"),
    [(2, None, [5, 4]), (1, 2, [5, 2]), (0, 5, [5])],
)
def test_pruning_keeps_the_newest_and_the_best(tmp_path: Path, keep: int, best: int | None, left: list[int]) -> None:
    write_steps(tmp_path, 1, 2, 3, 4, 5)
    if best:
        mark_best(tmp_path, best)
    deleted = prune(tmp_path, keep)
    assert [checkpoint.step for checkpoint in list_checkpoints(tmp_path)] == left
    assert sorted([*deleted, *left]) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("content", ['{"step": 2}', '{"step": 6}', '{"step": "2"}', "{"])
def test_a_mark_of_1_1_that_may_have_changed_costs_no_checkpoint(content: str, tmp_path: Path) -> None:
    write_steps(tmp_path, 1, 2, 3)
    (tmp_path / "checkpoints" / "best.json").write_text(content, encoding="utf-8")
    prune(tmp_path, keep=1)
    assert find(tmp_path, 2)


def test_a_rolled_back_run_has_its_earlier_best(tmp_path: Path) -> None:
    write_steps(tmp_path, 1, 2, 3)
    mark_best(tmp_path, 1)
    mark_best(tmp_path, 3)
    checkpoints.delete(find(tmp_path, 3))
    assert checkpoints.best_step(tmp_path) == 1


def test_a_checkpoint_is_found_by_step_newest_or_best(tmp_path: Path) -> None:
    write_steps(tmp_path, 1, 2, 3)
    with pytest.raises(CheckpointError) as caught:
        find(tmp_path, "best")
    assert (caught.value.problem, caught.value.detail) == ("not_found", "3, 2, 1")
    mark_best(tmp_path, 2)
    assert [find(tmp_path, 1).step, find(tmp_path, "newest").step, find(tmp_path, "best").step] == [1, 3, 2]
