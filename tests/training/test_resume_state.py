"""The resume state: what goes in comes out bit for bit, and nothing that fails costs the old one."""

import random
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from utils.core import folders
from utils.core.errors import StorageError
from utils.training import resume_state
from utils.training.resume_state import Snapshot, capture_rng, load, restore_rng, save
from utils.xtts import checkpoints
from utils.xtts.tensors import read_tensors, write_tensors


class Tied(nn.Module):
    """Two heads that are one in memory, a buffer, and a weight that is stored transposed."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 3)
        self.outer = nn.Linear(4, 3, bias=False)
        self.outer.weight = self.inner.weight
        self.turned = nn.Parameter(torch.randn(2, 5).t())
        self.register_buffer("counts", torch.arange(3))


def snapshot(**changes: Any) -> Snapshot:
    values: dict[str, Any] = {"update": 3, "weights": {"w": torch.ones(2)}, "optimizer": {}} | changes
    return Snapshot(**values)


def same(left: Any, right: Any) -> bool:
    if type(left) is not type(right) and not isinstance(left, dict):
        return False
    if isinstance(left, Tensor):
        return left.dtype == right.dtype and torch.equal(left, right)
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


@pytest.mark.parametrize(
    "state",
    [
        {"state": {0: {"step": 3, "state1": torch.arange(16, dtype=torch.uint8).view(4, 4), "absmax1": torch.ones(2)}}},
        {1: torch.zeros(1), "1": torch.ones(1), "a": {"b": torch.zeros(2)}, "a/b": torch.ones(2), '"1"': torch.ones(3)},
        {"empty": {}, "none": [], "pair": (), "infinite": [float("inf"), -1.0], "name": "ä", "no": torch.ones(0)},
        {"half": torch.ones(2, dtype=torch.bfloat16), "flag": torch.tensor(True), "wide": torch.zeros(1, 3).double()},
    ],
)  # fmt: skip
def test_any_optimizer_state_comes_back(tmp_path: Path, state: dict[str, Any]) -> None:
    save(tmp_path / "resume", snapshot(optimizer=state))
    assert same(load(tmp_path / "resume").optimizer, state)


@pytest.mark.parametrize("value", [object(), torch.ones(2).to_sparse()])
def test_what_cannot_be_saved_leaves_the_old_state(tmp_path: Path, value: object) -> None:
    save(tmp_path / "resume", snapshot())
    with pytest.raises((TypeError, RuntimeError)):
        save(tmp_path / "resume", snapshot(update=4, optimizer={"a": value}))
    assert load(tmp_path / "resume").update == 3
    assert [path.name for path in tmp_path.iterdir()] == ["resume"]


def test_every_field_comes_back_from_files_without_pickles(tmp_path: Path) -> None:
    written = snapshot(
        weights=Tied().state_dict(),
        ema={"w": torch.zeros(2)},
        scheduler={"last_epoch": 3, "_last_lr": [1e-5]},
        scaler={"scale": 65536.0, "growth_tracker": 2},
        guards={"nan": {"streak": 1}},
        random=capture_rng(),
        seconds=12.5,
        settings={"seed": 1},
        dataset_hash="d",
        extra={"clips": torch.arange(3)},
    )
    save(tmp_path / "resume", written)
    folder = tmp_path / "resume"
    assert same(vars(load(folder)), vars(written))
    names = {path.name for path in folder.iterdir()}
    tensors = {name for name in names if name.endswith(".safetensors")}
    assert len(tensors) == 4
    assert names == tensors | {checkpoints.RESUME_STATE, resume_state.OPTIMIZER_TREE}
    for name in tensors:
        load_file(folder / name)


def test_tied_weights_are_one_again(tmp_path: Path) -> None:
    model = Tied()
    write_tensors(tmp_path / "tied", model.state_dict())
    loaded = read_tensors(tmp_path / "tied")
    assert same(loaded, dict(model.state_dict()))
    assert loaded["outer.weight"] is loaded["inner.weight"]
    assert loaded["turned"].stride() == model.turned.stride()


def test_the_file_can_be_replaced_while_what_was_read_lives(tmp_path: Path) -> None:
    save(tmp_path / "resume", snapshot(weights={"w": torch.full((1000,), 1.0)}))
    loaded = load(tmp_path / "resume")
    save(tmp_path / "resume", snapshot(weights={"w": torch.full((1000,), 2.0)}))
    assert loaded.weights["w"].sum() == 1000
    if Path("/proc/self/maps").exists():
        assert str(tmp_path) not in Path("/proc/self/maps").read_text()


def test_a_full_disk_is_refused_before_the_first_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "resume", snapshot())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=2_000_000))
    with pytest.raises(StorageError, match=r"needs 4\.3 MB, and 2 MB are free.*save_n_checkpoints"):
        save(tmp_path / "resume", snapshot(update=4, weights={"w": torch.zeros(1_000_000)}))
    assert load(tmp_path / "resume").update == 3


def test_a_disk_that_fills_up_during_a_save_leaves_the_old_state(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(small_disk / "resume", snapshot(weights={"w": torch.ones(1000)}))
    monkeypatch.setattr(folders, "require_space", lambda *_: None)
    with pytest.raises(StorageError, match="No space left"):
        save(small_disk / "resume", snapshot(update=4, weights={"w": torch.ones(200_000)}))
    assert load(small_disk / "resume").update == 3
    assert [path.name for path in small_disk.iterdir()] == ["resume"]
    save(small_disk / "resume", snapshot(update=5))
    assert load(small_disk / "resume").update == 5


def test_random_numbers_continue_where_they_were(tmp_path: Path) -> None:
    def draw() -> list[float]:
        return [float(torch.rand(1)), float(np.random.rand()), random.random(), random.gauss(0, 1)]

    draw()
    save(tmp_path / "resume", snapshot(random=capture_rng()))
    expected = draw()
    restore_rng(load(tmp_path / "resume").random)
    assert draw() == expected
