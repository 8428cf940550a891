"""AdamW with its state on the CPU: bit for bit as torch's own."""

import copy
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from tests.training.small_gpt import small_gpt
from tests.training.speedups.lessons import farthest, learn
from utils.training.speedups.adamw import OffloadedAdamW

pytestmark = pytest.mark.slow

SETTINGS: dict[str, Any] = {"lr": 1e-3, "betas": (0.9, 0.96), "weight_decay": 0.1, "eps": 1e-8}
STAGED = partial(OffloadedAdamW, staged=True)
IN_PLACE = partial(OffloadedAdamW, staged=False)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", [STAGED, IN_PLACE], ids=["staged", "in place"])
def test_it_equals_adamw_bit_for_bit(kind: Any, fused: bool) -> None:
    ours, theirs = small_gpt(), small_gpt()
    learn(ours, kind(ours.parameters(), **SETTINGS, fused=fused))
    learn(theirs, torch.optim.AdamW(theirs.parameters(), **SETTINGS, fused=fused, foreach=False))
    assert farthest(ours, theirs) == 0


def test_a_run_that_began_with_adamw_ends_as_an_unbroken_one() -> None:
    whole, half, resumed = small_gpt(), small_gpt(), small_gpt()
    learn(whole, OffloadedAdamW(whole.parameters(), **SETTINGS, fused=True), 4)
    first = torch.optim.AdamW(half.parameters(), **SETTINGS, fused=True)
    learn(half, first, 2)
    resumed.load_state_dict(half.state_dict())
    second = OffloadedAdamW(resumed.parameters(), **{**SETTINGS, "lr": 1.0}, fused=True)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    learn(resumed, second, 2, first=2)
    assert farthest(whole, resumed) == 0


@pytest.mark.parametrize("kind", [STAGED, IN_PLACE])
def test_offloading_leaves_nothing_elsewhere(kind: Any) -> None:
    gpt = small_gpt()
    idle = nn.Parameter(torch.ones(3))  # has no gradient
    optimizer = kind([*gpt.parameters(), idle], **SETTINGS, fused=True)
    learn(gpt, optimizer, 1)
    assert all(weight.grad is None for weight in gpt.parameters())
    assert {part.device.type for state in optimizer.state.values() for part in state.values()} == {"cpu"}
    assert torch.equal(idle, torch.ones(3))
    assert idle not in optimizer.state
