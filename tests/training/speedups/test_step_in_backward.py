"""Tests of the update inside the backward pass."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import nn

from tests.training.small_gpt import small_gpt
from tests.training.speedups.lessons import farthest, learn, loss
from utils.training.speedups.adamw import StepInBackward

pytestmark = pytest.mark.slow

SETTINGS: dict[str, Any] = {"lr": 1e-3, "betas": (0.9, 0.96), "weight_decay": 0.1}


@pytest.mark.parametrize("fused", [True, False])
def test_without_a_clip_it_equals_adamw_bit_for_bit(fused: bool) -> None:
    ours, theirs = small_gpt(), small_gpt()
    learn(ours, StepInBackward(ours.parameters(), **SETTINGS, fused=fused))
    learn(theirs, torch.optim.AdamW(theirs.parameters(), **SETTINGS, fused=fused, foreach=False))
    assert farthest(ours, theirs) == 0


def test_gradients_are_dropped_while_others_are_computed() -> None:
    gpt = small_gpt()
    held: list[int] = []

    def count(weight: torch.Tensor) -> None:
        held.append(sum(other.grad.nbytes for other in gpt.parameters() if other.grad is not None))

    optimizer = StepInBackward(gpt.parameters(), **SETTINGS)
    for weight in gpt.parameters():
        weight.register_post_accumulate_grad_hook(count)  # called after ours
    torch.autograd.backward(loss(gpt))
    assert len(held) == len(optimizer.state) == len(list(gpt.parameters()))
    assert sum(held) == 0, "as soon as a gradient is complete, it is gone; plain AdamW holds all of them in the end"


def test_the_gradients_of_all_weights_together_are_never_longer_than_the_limit() -> None:
    weights = [nn.Parameter(torch.zeros(4)) for _ in range(4)]
    optimizer = StepInBackward(weights, **SETTINGS, clip=1.0)
    torch.autograd.backward([1000 * weight.sum() for weight in weights])
    applied = torch.cat([optimizer.state[weight]["exp_avg"] / (1 - 0.9) for weight in weights])
    assert float(applied.norm()) == pytest.approx(1.0, rel=1e-5)
    assert optimizer.last_norm == pytest.approx(4000)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("fault", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_changes_nothing(fused: bool, fault: float) -> None:
    bad, good = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    optimizer = StepInBackward([bad, good], **SETTINGS, clip=1.0, fused=fused)
    torch.autograd.backward(bad.sum() * fault + good.sum())
    assert torch.equal(bad, torch.ones(3))
    assert not torch.equal(good, torch.ones(3))
    assert (optimizer.skipped, math.isfinite(optimizer.last_norm)) == (1, False)
    assert [float(optimizer.state[weight]["step"]) for weight in (bad, good)] == [0, 1]
    optimizer.zero_grad()
    torch.autograd.backward(bad.sum())
    assert optimizer.skipped == 0
    assert optimizer.last_norm == pytest.approx(math.sqrt(3))
    assert 0 < float(bad.detach()[0]) < 1


@pytest.mark.parametrize("fused", [True, False])
def test_a_scaled_loss_gives_the_same_update(fused: bool) -> None:
    plain, scaled = small_gpt(), small_gpt()
    learn(plain, StepInBackward(plain.parameters(), **SETTINGS, clip=1.0, fused=fused), 1)
    optimizer = StepInBackward(scaled.parameters(), **SETTINGS, clip=1.0, fused=fused)
    optimizer.loss_scale = 1024.0
    torch.autograd.backward(loss(scaled) * 1024)
    assert farthest(plain, scaled) < 1e-6


def test_a_resumed_run_ends_as_an_unbroken_one() -> None:
    whole, half = small_gpt(), small_gpt()
    learn(whole, StepInBackward(whole.parameters(), **SETTINGS, clip=1.0), 4)
    first = StepInBackward(half.parameters(), **SETTINGS, clip=1.0)
    learn(half, first, 2)
    first.close()
    second = StepInBackward(half.parameters(), lr=1.0, clip=1.0)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    learn(half, second, 2, first=2)
    assert farthest(whole, half) == 0


def test_closed_it_lets_the_gradients_be() -> None:
    weight = nn.Parameter(torch.zeros(1))
    optimizer = StepInBackward([weight])
    optimizer.close()
    torch.autograd.backward(weight.sum())
    assert weight.grad is not None
    assert float(weight.detach()) == 0
