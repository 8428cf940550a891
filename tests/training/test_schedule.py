"""Tests of the learning rate's curve."""

import math
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import LRScheduler

from utils.training.schedule import make_schedule, scale_rates, warmup_updates

PEAK = 2e-4


def optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=PEAK)


def rates(schedule: LRScheduler, updates: int) -> list[float]:
    """Return the rate of each of the next updates."""
    found = []
    for _ in range(updates):
        found.append(float(schedule.optimizer.param_groups[0]["lr"]))
        schedule.optimizer.step()
        schedule.step()
    return found


@pytest.mark.parametrize(
    ("total", "steps", "share", "warmup"),
    [(10_000, 100, 0.1, 100), (200, 100, 0.1, 20), (5, 100, 0.1, 0), (50, 0, 1, 0)],
)
def test_the_rise_is_a_bounded_share_of_the_run(total: int, steps: int, share: float, warmup: int) -> None:
    assert warmup_updates(total, steps, share) == warmup


def falling(kind: str, done: float) -> float:
    return {"cosine": 0.5 * (1 + math.cos(math.pi * done)), "linear": 1 - done, "constant": 1.0}[kind]


@pytest.mark.parametrize("kind", ["cosine", "linear", "constant"])
@pytest.mark.parametrize(("total", "warmup"), [(40, 4), (40, 0), (7, 7), (1, 0)])
def test_the_curve_has_its_closed_form(kind: Any, total: int, warmup: int) -> None:
    found = rates(make_schedule(optimizer(), kind, total, warmup, 1.0), total)
    rise = [PEAK * (update + 1) / warmup for update in range(warmup)][: max(0, warmup - 1)]
    fall = [PEAK * falling(kind, (update + 1 - warmup) / (total + 1 - warmup)) for update in range(len(rise), total)]
    assert found == pytest.approx(rise + fall, rel=1e-6)
    assert min(found) > 0, "every update learns"


@pytest.mark.parametrize("kind", ["cosine", "linear", "constant"])
def test_a_resumed_run_goes_on_with_the_curve(kind: Any) -> None:
    whole = rates(make_schedule(optimizer(), kind, 30, 4, 0.5), 30)
    first = make_schedule(optimizer(), kind, 30, 4, 0.5)
    begun = rates(first, 11)
    second = make_schedule(optimizer(), kind, 30, 4, 0.5)
    second.load_state_dict(first.state_dict())
    second.optimizer.load_state_dict(first.optimizer.state_dict())
    assert begun + rates(second, 19) == whole


def test_the_whole_curve_can_be_lowered_and_a_checkpoint_keeps_it() -> None:
    whole = rates(make_schedule(optimizer(), "cosine", 30, 4, 0.5), 30)
    lowered = make_schedule(optimizer(), "cosine", 30, 4, 0.5)
    rates(lowered, 10)
    scale_rates(lowered, 0.5)
    assert rates(lowered, 5) == pytest.approx([rate / 2 for rate in whole[10:15]])
    resumed = make_schedule(optimizer(), "cosine", 30, 4, 0.5)
    resumed.load_state_dict(lowered.state_dict())
    resumed.optimizer.load_state_dict(lowered.optimizer.state_dict())
    assert rates(resumed, 15) == pytest.approx([rate / 2 for rate in whole[15:]])
