"""torch's own AdamW applied to one weight, for the optimisers that do not hold all weights at the same time."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim.adamw import adamw

State = dict[str, Tensor]


def new_state(weight: Tensor, home: torch.device) -> State:
    """Return moments of zero, named as torch.optim.AdamW names them, so that either reads the other's checkpoints."""
    moments = (torch.zeros(weight.shape, dtype=torch.float32, device=home) for _ in range(2))
    return {"step": torch.zeros((), device=home), **dict(zip(("exp_avg", "exp_avg_sq"), moments, strict=True))}


def apply_adamw(
    weight: Tensor,
    gradient: Tensor,
    state: State,
    group: Mapping[str, Any],
    divisor: Tensor | None = None,
    leave_out: Tensor | None = None,
) -> None:
    """Update one weight in place.

    Args:
        weight: What is trained.
        gradient: Its gradient; may be divided in place.
        state: What ``new_state`` made.
        group: Its parameter group: lr, betas, eps, weight_decay and fused.
        divisor: What the gradient is divided by.
        leave_out: 1 where nothing may be changed, else 0. Like the divisor it stays on its device: no waiting.
    """
    if not group["fused"]:  # only the fused kernel knows these two
        if leave_out is not None and bool(leave_out):
            return
        gradient = gradient if divisor is None else gradient.div_(divisor)
        divisor = leave_out = None
    beta1, beta2 = group["betas"]
    adamw(
        [weight],
        [gradient],
        [state["exp_avg"]],
        [state["exp_avg_sq"]],
        [],
        [state["step"]],
        foreach=False,
        fused=group["fused"],
        grad_scale=divisor,
        found_inf=leave_out,
        amsgrad=False,
        beta1=beta1,
        beta2=beta2,
        lr=group["lr"],
        weight_decay=group["weight_decay"],
        eps=group["eps"],
        maximize=False,
    )
