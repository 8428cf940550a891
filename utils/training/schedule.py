"""The learning rate of each update: a rise, then the fall that was chosen.

The curves are those of transformers, read one update further: its first update would have a rate of 0 and learn
nothing. Here the first has one share of the rise, the last is the smallest above 0, and every update counts.
"""

from collections.abc import Callable
from typing import Literal

import torch
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, LRScheduler

Kind = Literal["cosine", "linear", "constant"]
NAMES = {"cosine": "cosine", "linear": "linear", "constant": "constant_with_warmup"}


def warmup_updates(total: int, warmup_steps: int, warmup_share: float) -> int:
    """Return how many updates the rise takes: a bounded share of the run, so that a short one reaches its rate."""
    return min(warmup_steps, int(total * warmup_share))


def make_schedule(
    optimizer: Optimizer, kind: Kind, updates: int, warmup_steps: int, warmup_share: float
) -> LRScheduler:
    """Return a schedule to be stepped once after each update; it sets the rate of the first one here.

    Args:
        optimizer: Its groups' rates are the highest of the curve.
        kind: How the rate falls.
        updates: Updates of the whole run.
        warmup_steps: Updates of the rise.
        warmup_share: Largest share of the run that the rise may take.
    """
    return LambdaLR(optimizer, _curve(kind, updates, warmup_updates(updates, warmup_steps, warmup_share)))


def scale_rates(schedule: LRScheduler, factor: float) -> None:
    """Multiply the whole curve, now and from now on; a checkpoint of the schedule keeps it."""
    schedule.base_lrs = [rate * factor for rate in schedule.base_lrs]
    for group in schedule.optimizer.param_groups:
        group["lr"] *= factor


def _curve(kind: Kind, updates: int, warmup: int) -> Callable[[int], float]:
    """Return what share of the highest rate an update has, counted from 0; after the last one it stays."""
    from transformers import get_scheduler

    probe = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    schedule = get_scheduler(NAMES[kind], probe, num_warmup_steps=warmup, num_training_steps=updates + 1)
    (share,) = schedule.lr_lambdas
    return lambda update: float(share(min(update, updates - 1) + 1))
