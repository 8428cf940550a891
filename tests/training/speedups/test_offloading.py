"""Tests of the optimiser that lives on the CPU."""

import copy
from typing import Any

import pytest
import torch

from tests.training.small_gpt import small_gpt
from tests.training.speedups.lessons import farthest, learn
from utils.training.speedups import SpeedupError
from utils.training.speedups.adamw import OffloadedAdamW

pytestmark = pytest.mark.slow

SETTINGS: dict[str, Any] = {"lr": 1e-3, "betas": (0.9, 0.96), "weight_decay": 0.1}


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("staged", [True, False])
def test_it_equals_adamw_bit_for_bit(fused: bool, staged: bool) -> None:
    ours, theirs = small_gpt(), small_gpt()
    learn(ours, OffloadedAdamW(ours.parameters(), **SETTINGS, fused=fused, staged=staged))
    learn(theirs, torch.optim.AdamW(theirs.parameters(), **SETTINGS, fused=fused, foreach=False))
    assert farthest(ours, theirs) == 0


@pytest.mark.parametrize("staged", [True, False])
def test_no_gradient_is_left_after_an_update(staged: bool) -> None:
    gpt = small_gpt()
    optimizer = OffloadedAdamW(gpt.parameters(), **SETTINGS, staged=staged)
    learn(gpt, optimizer, 1)
    assert all(weight.grad is None for weight in gpt.parameters())
    assert {part.device.type for state in optimizer.state.values() for part in state.values()} == {"cpu"}


def test_a_weight_without_a_gradient_stays_as_it_is() -> None:
    weights = [torch.nn.Parameter(torch.ones(3)), torch.nn.Parameter(torch.ones(3))]
    weights[0].grad = torch.ones(3)
    optimizer = OffloadedAdamW(weights, **SETTINGS)
    optimizer.step()
    assert not torch.equal(weights[0], torch.ones(3))
    assert torch.equal(weights[1], torch.ones(3))
    assert weights[1] not in optimizer.state


@pytest.mark.parametrize("kinds", [(OffloadedAdamW, OffloadedAdamW), (torch.optim.AdamW, OffloadedAdamW)])
def test_a_resumed_run_ends_as_an_unbroken_one(kinds: tuple[Any, Any]) -> None:
    whole, half = small_gpt(), small_gpt()
    learn(whole, OffloadedAdamW(whole.parameters(), **SETTINGS), 4)
    first = kinds[0](half.parameters(), **SETTINGS, fused=True)
    learn(half, first, 2)
    second = kinds[1](half.parameters(), lr=1.0)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    learn(half, second, 2, first=2)
    assert farthest(whole, half) == 0


def test_half_precision_weights_are_refused() -> None:
    with pytest.raises(SpeedupError, match="not float32"):
        OffloadedAdamW([torch.nn.Parameter(torch.ones(3, dtype=torch.float16))])


@pytest.mark.gpu
def test_on_a_gpu_it_equals_the_cpu_and_holds_no_state_there() -> None:
    away, here = small_gpt(), small_gpt()
    random = torch.Generator().manual_seed(0)
    gradients = [torch.randn(weight.shape, generator=random) for weight in here.parameters()]
    away.cuda()
    optimizers = [OffloadedAdamW(gpt.parameters(), **SETTINGS) for gpt in (away, here)]
    for _ in range(3):
        for gpt, optimizer in zip((away, here), optimizers, strict=True):
            for weight, gradient in zip(gpt.parameters(), gradients, strict=True):
                weight.grad = gradient.to(weight.device, copy=True)
            optimizer.step()
    assert farthest(away.cpu(), here) == 0
    assert {part.device.type for state in optimizers[0].state.values() for part in state.values()} == {"cpu"}
