"""AdamW with its state on the CPU, and AdamW inside the backward pass: bit for bit as torch's own."""

import copy
import math
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from tests.training.small_gpt import small_gpt
from tests.training.speedups.lessons import farthest, learn, loss
from utils.training.speedups.adamw import OffloadedAdamW, StepInBackward

pytestmark = pytest.mark.slow

SETTINGS: dict[str, Any] = {"lr": 1e-3, "betas": (0.9, 0.96), "weight_decay": 0.1}
STAGED = partial(OffloadedAdamW, staged=True)
IN_PLACE = partial(OffloadedAdamW, staged=False)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("kind", [STAGED, IN_PLACE, StepInBackward], ids=["staged", "in place", "in backward"])
def test_it_equals_adamw_bit_for_bit(kind: Any, fused: bool) -> None:
    ours, theirs = small_gpt(), small_gpt()
    learn(ours, kind(ours.parameters(), **SETTINGS, fused=fused))
    learn(theirs, torch.optim.AdamW(theirs.parameters(), **SETTINGS, fused=fused, foreach=False))
    assert farthest(ours, theirs) == 0


@pytest.mark.parametrize(
    ("first_kind", "second_kind"),
    [(torch.optim.AdamW, OffloadedAdamW), (StepInBackward, StepInBackward)],
)
def test_a_resumed_run_ends_as_an_unbroken_one(first_kind: Any, second_kind: Any) -> None:
    whole, half, resumed = small_gpt(), small_gpt(), small_gpt()
    learn(whole, second_kind(whole.parameters(), **SETTINGS), 4)
    first = first_kind(half.parameters(), **SETTINGS, fused=True)
    learn(half, first, 2)
    resumed.load_state_dict(half.state_dict())
    second = second_kind(resumed.parameters(), lr=1.0)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    learn(resumed, second, 2, first=2)
    assert farthest(whole, resumed) == 0


@pytest.mark.parametrize("kind", [STAGED, IN_PLACE])
def test_offloading_leaves_no_gradient_and_no_state_elsewhere(kind: Any) -> None:
    gpt = small_gpt()
    idle = nn.Parameter(torch.ones(3))  # has no gradient
    optimizer = kind([*gpt.parameters(), idle], **SETTINGS)
    learn(gpt, optimizer, 1)
    assert all(weight.grad is None for weight in gpt.parameters())
    assert {part.device.type for state in optimizer.state.values() for part in state.values()} == {"cpu"}
    assert torch.equal(idle, torch.ones(3))
    assert idle not in optimizer.state


@pytest.mark.gpu
def test_offloading_from_a_gpu_equals_the_cpu_and_holds_no_state_there() -> None:
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


def test_in_the_backward_pass_gradients_are_dropped_while_others_are_computed() -> None:
    gpt = small_gpt()
    held: list[int] = []

    def count(weight: torch.Tensor) -> None:
        held.append(sum(other.grad.nbytes for other in gpt.parameters() if other.grad is not None))

    optimizer = StepInBackward(gpt.parameters(), **SETTINGS)
    for weight in gpt.parameters():
        weight.register_post_accumulate_grad_hook(count)  # called after ours
    torch.autograd.backward(loss(gpt))
    assert len(held) == len(optimizer.state) == len(list(gpt.parameters()))
    assert sum(held) == 0


def test_all_gradients_together_never_exceed_the_limit() -> None:
    weights = [nn.Parameter(torch.zeros(4)) for _ in range(4)]
    optimizer = StepInBackward(weights, **SETTINGS, clip=1.0)
    torch.autograd.backward([1000 * weight.sum() for weight in weights])
    applied = torch.cat([optimizer.state[weight]["exp_avg"] / (1 - 0.9) for weight in weights])
    assert float(applied.norm()) == pytest.approx(1.0, rel=1e-5)
    assert optimizer.last_norm == pytest.approx(4000)


@pytest.mark.parametrize(("fused", "value"), [(True, math.nan), (False, math.inf)])
def test_a_gradient_that_is_not_finite_changes_nothing(fused: bool, value: float) -> None:
    bad, good = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(3))
    optimizer = StepInBackward([bad, good], **SETTINGS, clip=1.0, fused=fused)
    torch.autograd.backward(bad.sum() * value + good.sum())
    assert torch.equal(bad, torch.ones(3))
    assert not torch.equal(good, torch.ones(3))
    assert not math.isfinite(optimizer.last_norm)
    assert [float(optimizer.state[weight]["step"]) for weight in (bad, good)] == [0, 1]
    optimizer.zero_grad()
    torch.autograd.backward(bad.sum())
    assert optimizer.last_norm == pytest.approx(math.sqrt(3))
    assert 0 < float(bad.detach()[0]) < 1
