"""The largest batch is found by real updates that leave no trace."""

import mmap
from typing import Any

import pytest
import torch
from torch import nn

from tests.training.small_gpt import small_gpt
from utils.config import TrainConfig
from utils.training import memory
from utils.training.batch_size import Peak, find_optimal_batch_size, try_step, untouched
from utils.training.memory import NoRoomError
from utils.training.memory_parts import Longest, ModelShape
from utils.training.packing import PackedGpt, SpecialTokens
from utils.training.rehearsal import Rehearsal, longest_batch, random_gpt

pytestmark = pytest.mark.slow

LONGEST = Longest.allowed(1.0, 10)


class Memory:
    """Holds so many clips, and runs out of memory beyond."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.tried: list[int] = []
        self.undone = 0

    def fits(self, clips: int) -> bool:
        self.tried.append(clips)
        if clips > self.room:
            raise torch.OutOfMemoryError
        return True

    def undo(self) -> None:
        self.undone += 1


@pytest.mark.parametrize(
    ("start", "maximum", "room", "found"),
    [
        (8, 64, 64, 64),  # nothing failed: no margin is needed
        (8, 64, 1000, 64),
        (8, 64, 40, 36),
        (8, 64, 10, 9),
        (8, 64, 7, 6),
        (8, 64, 2, 1),
        (8, 64, 1, 1),
        (1, 1, 5, 1),
        (64, 64, 63, 56),
    ],
)
def test_the_largest_batch_is_found_less_a_tenth(start: int, maximum: int, room: int, found: int) -> None:
    there = Memory(room)
    assert find_optimal_batch_size(start, maximum, there.fits, there.undo) == found
    assert there.tried[0] == start
    assert max(there.tried) <= maximum
    assert len(there.tried) == len(set(there.tried)) <= 9
    assert there.undone == len(there.tried)


def test_a_trial_may_say_no_itself() -> None:
    assert find_optimal_batch_size(4, 100, lambda clips: clips <= 20) == 18


def test_not_even_one_clip_is_an_error_with_a_cure() -> None:
    with pytest.raises(NoRoomError, match="memory-plan"):
        find_optimal_batch_size(4, 8, Memory(0).fits)


def test_other_errors_are_passed_on_after_undoing() -> None:
    def broken(clips: int) -> bool:
        raise RuntimeError("CUDA error: device-side assert triggered")

    there = Memory(0)
    with pytest.raises(RuntimeError, match="device-side assert"):
        find_optimal_batch_size(4, 8, broken, there.undo)
    assert there.undone == 1


def prepared() -> tuple[PackedGpt, torch.optim.AdamW, Any]:
    gpt = small_gpt()
    model = PackedGpt(gpt).train()
    return model, torch.optim.AdamW(model.parameters(), lr=1e-2), longest_batch(SpecialTokens.of(gpt), LONGEST, 2)


def copy_of(model: nn.Module) -> list[torch.Tensor]:
    return [weight.detach().clone() for weight in model.parameters()]


@pytest.mark.parametrize("updates", [0, 1])
def test_a_trial_leaves_no_trace(updates: int) -> None:
    model, optimizer, batch = prepared()
    for _ in range(updates):
        model(batch).audio.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    weights = copy_of(model)
    moments = [state["exp_avg"].clone() for state in optimizer.state.values()]
    random = torch.get_rng_state()
    trial = try_step(model, optimizer, batch)
    assert trial.seconds > 0
    assert trial.peak >= trial.before > 0
    assert all(map(torch.equal, copy_of(model), weights))
    assert len(optimizer.state) == len(moments)
    assert all(map(torch.equal, [state["exp_avg"] for state in optimizer.state.values()], moments))
    assert torch.equal(torch.get_rng_state(), random)
    assert all(weight.grad is None for weight in model.parameters())
    assert model.training


def test_a_failed_trial_leaves_no_trace_either() -> None:
    model, optimizer, batch = prepared()
    weights = copy_of(model)

    def runs_out() -> None:
        with untouched(model, optimizer, torch.device("cpu")):
            model(batch).audio.backward()
            optimizer.step()
            raise torch.OutOfMemoryError

    with pytest.raises(torch.OutOfMemoryError):
        runs_out()
    assert all(map(torch.equal, copy_of(model), weights))
    assert not optimizer.state
    assert all(weight.grad is None for weight in model.parameters())


def test_a_trial_without_undoing_really_updates() -> None:
    model, optimizer, batch = prepared()
    weights = copy_of(model)
    try_step(model, optimizer, batch, undo=False)
    assert not all(map(torch.equal, copy_of(model), weights))
    assert {int(state["step"]) for state in optimizer.state.values()} == {2}


def test_the_peak_of_a_processor_is_seen_between_two_looks() -> None:
    size = 64 * 2**20
    with Peak(torch.device("cpu")) as seen, mmap.mmap(-1, size) as block:  # not torch's memory, which may be old
        block.write(b"1" * size)
        seen._done.wait(0.1)
    assert seen.peak - seen.before > 48 * 2**20


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_rehearsal_takes_the_update_that_the_settings_ask_for(dtype: torch.dtype) -> None:
    shape = ModelShape(2, 64, 4, 100)
    gpt = random_gpt(shape)
    assert ModelShape.of(gpt) == shape
    config = TrainConfig(enable_ema=True, optimizer="adafactor")
    rehearsal = Rehearsal(gpt, config, LONGEST, torch.device("cpu"), dtype)
    trial = rehearsal.measure(2)
    assert trial.peak > memory.predict(shape, config, LONGEST, memory.gpu_of(1)).parts["weights"]
    assert type(rehearsal.optimizer).__name__ == "Adafactor"
