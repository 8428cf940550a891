"""AdamW that updates each weight as soon as its gradient is there, so that no two gradients exist at the same time.

The gradient's whole length is known only when the first weights are changed already. So each of n gradients is clipped
by itself, to limit / sqrt(n): together they are never longer than the limit, as with clipping over all of them.
"""

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from utils.training.speedups.adamw import apply_adamw, new_state


class StepInBackward(Optimizer):
    """AdamW inside the backward pass; ``step`` has nothing left to do.

    Learning rate schedules and checkpoints use it as any optimiser. A gradient that is not finite changes nothing:
    its weight is left out, and ``last_norm`` and ``skipped`` show it. Both count from the last ``zero_grad``.

    Args:
        params: Weights or parameter groups.
        lr: Learning rate.
        betas: Shares of the moments that are kept.
        eps: Keeps the divisor from zero.
        weight_decay: Pull towards zero.
        clip: Longest gradient over all weights.
        fused: Use torch's fused kernel; without it, every weight waits for its device.

    Attributes:
        loss_scale: What the loss was multiplied by before the backward pass (fp16); the gradients are divided by it.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        clip: float = math.inf,
        fused: bool = True,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "fused": fused})
        places = [(place, weight) for place, group in enumerate(self.param_groups) for weight in group["params"]]
        self.loss_scale = 1.0
        self.limit = clip / math.sqrt(len(places))
        self._squares: list[Tensor] = []
        self._left_out: list[Tensor] = []
        self._hooks = [
            weight.register_post_accumulate_grad_hook(partial(self._update, place)) for place, weight in places
        ]

    def close(self) -> None:
        """Let go of the weights: the next backward pass leaves their gradients to others."""
        while self._hooks:
            self._hooks.pop().remove()

    @property
    def last_norm(self) -> float:
        """Length of the whole gradient before clipping; not finite when one number of it is not."""
        return math.sqrt(float(torch.stack(self._squares).sum())) if self._squares else 0.0

    @property
    def skipped(self) -> int:
        """How many weights were left out because their gradient was not finite."""
        return int(torch.stack(self._left_out).sum()) if self._left_out else 0

    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # noqa: ANN401 - as torch
        """Return the closure's loss; its backward pass has done everything."""
        return None if closure is None else closure()

    def zero_grad(self, set_to_none: bool = True) -> None:  # noqa: FBT001, FBT002 - as torch declares it
        """Forget the figures of the last backward pass; there is no gradient to forget."""
        super().zero_grad(set_to_none)
        self._squares, self._left_out = [], []

    @torch.no_grad()
    def _update(self, place: int, weight: Tensor) -> None:
        """Take a gradient and apply it; nothing here waits for the device."""
        gradient, weight.grad = weight.grad, None
        assert gradient is not None  # noqa: S101 - torch calls this because there is one
        if not self.state[weight]:
            self.state[weight] = new_state(weight, weight.device)
        norm = torch.linalg.vector_norm(gradient, dtype=torch.float32) / self.loss_scale
        left_out = torch.isfinite(norm).logical_not().float()
        divisor = (norm / self.limit).clamp(min=1.0) * self.loss_scale
        apply_adamw(weight, gradient, self.state[weight], self.param_groups[place], divisor, left_out)
        self._squares.append(norm.square())
        self._left_out.append(left_out)
