"""The learning rate schedule: a warm-up, then the chosen decay.

The curves are those of transformers, shifted by one update: there, the first update has a rate of 0 and learns nothing.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

Kind = Literal["cosine", "linear", "constant"]
NAMES = {"cosine": "cosine", "linear": "linear", "constant": "constant_with_warmup"}


def warmup_updates(total: int, warmup_steps: int, warmup_share: float) -> int:
    """Return the length of the warm-up: at most a share of the run, so that short runs reach the peak rate."""
    return min(warmup_steps, int(total * warmup_share))


def make_schedule(
    optimizer: Optimizer, kind: Kind, updates: int, warmup_steps: int, warmup_share: float
) -> LRScheduler:
    """Create a schedule that is stepped once after each update.

    Args:
        optimizer: Its learning rates are the peak of the curve.
        kind: Shape of the decay.
        updates: Updates of the whole run.
        warmup_steps: Updates of the warm-up.
        warmup_share: Maximum share of the run for the warm-up.
    """
    return LambdaLR(optimizer, _curve(kind, updates, warmup_updates(updates, warmup_steps, warmup_share)))


def scale_rates(schedule: LRScheduler, factor: float) -> None:
    """Multiply the current and all later learning rates; the factor is saved with the schedule."""
    schedule.base_lrs = [rate * factor for rate in schedule.base_lrs]
    for group in schedule.optimizer.param_groups:
        group["lr"] *= factor


def _curve(kind: Kind, updates: int, warmup: int) -> Callable[[int], float]:
    """Return a function from an update, counted from 0, to its share of the peak rate."""
    from transformers import get_scheduler

    probe = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    schedule = get_scheduler(NAMES[kind], probe, num_warmup_steps=warmup, num_training_steps=updates + 1)
    (share,) = schedule.lr_lambdas
    return lambda update: float(share(min(update, updates - 1) + 1))
