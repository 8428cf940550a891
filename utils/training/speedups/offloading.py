"""AdamW whose moments and arithmetic are on the CPU: the device holds weights and gradients, nothing else."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from utils.core.errors import SpeedupError
from utils.training.speedups.adamw import State, apply_adamw, new_state

CPU = torch.device("cpu")


class OffloadedAdamW(Optimizer):
    """AdamW with its state in RAM.

    Each update brings one weight and its gradient to the CPU, updates there and sends the weight back, while the next
    one is under way. No second copy of the weights is kept in RAM, so whoever loads or swaps weights need not tell.
    On a CPU the weights are updated where they are, bit for bit as torch.optim.AdamW does it.

    Args:
        params: Weights or parameter groups, all float32.
        lr: Learning rate.
        betas: Shares of the moments that are kept.
        eps: Keeps the divisor from zero.
        weight_decay: Pull towards zero.
        fused: Use torch's fused kernel for the CPU.
        staged: Bring weights to the CPU through staging memory; by default those that are elsewhere.
    """

    def __init__(
        self,
        params: Iterable[Any],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        *,
        fused: bool = True,
        staged: bool | None = None,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "fused": fused})
        if any(weight.dtype != torch.float32 for group in self.param_groups for weight in group["params"]):
            raise SpeedupError(
                "offload_optimizer: a weight is not float32.", hint="Load the model in float32; autocast does the rest."
            )
        self.staged = staged
        self._lanes: tuple[_Lane, _Lane] | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # noqa: ANN401 - as torch
        """Update every weight that has a gradient, and drop the gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        due = [(weight, group) for group in self.param_groups for weight in group["params"] if weight.grad is not None]
        here = [pair for pair in due if not self._is_staged(pair[0])]
        for weight, group in here:
            apply_adamw(weight, weight.grad, self._state(weight), group)
            weight.grad = None
        if away := [pair for pair in due if self._is_staged(pair[0])]:
            self._update_away(away)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state; its moments stay on the CPU, where torch would send them to the weights' device."""
        super().load_state_dict({**state_dict, "state": {}})
        weights = (weight for group in self.param_groups for weight in group["params"])
        numbers = (number for group in state_dict["param_groups"] for number in group["params"])
        for number, weight in zip(numbers, weights, strict=True):
            if number in state_dict["state"]:
                self.state[weight] = {name: part.to(CPU) for name, part in state_dict["state"][number].items()}

    def _is_staged(self, weight: Tensor) -> bool:
        return weight.device.type != "cpu" if self.staged is None else self.staged

    def _state(self, weight: Tensor) -> State:
        state: State = self.state[weight]
        if not state:
            state.update(new_state(weight, CPU))
        return state

    def _update_away(self, due: list[tuple[Tensor, dict[str, Any]]]) -> None:
        """Update weights of another device; while one is worked on, the next comes and the one before goes."""
        first = due[0][0]
        backend = torch.get_device_module(first.device)
        if self._lanes is None:
            size = max(weight.numel() for group in self.param_groups for weight in group["params"])
            self._lanes = _Lane(size, first.device), _Lane(size, first.device)
            self._stream = backend.Stream()
        self._stream.wait_stream(backend.current_stream())
        with backend.stream(self._stream):
            for lane, (weight, group) in self._arriving(due):
                apply_adamw(lane.weight, lane.gradient, self._state(weight), group)
                weight.copy_(lane.weight, non_blocking=True)
        backend.current_stream().wait_stream(self._stream)

    def _arriving(
        self, due: list[tuple[Tensor, dict[str, Any]]]
    ) -> Iterator[tuple["_Lane", tuple[Tensor, dict[str, Any]]]]:
        """Yield each pair with the lane that it has arrived in, the next one having been sent for."""
        assert self._lanes is not None  # noqa: S101 - made by the only caller
        self._lanes[0].fetch(due[0][0])
        for number, pair in enumerate(due):
            if number + 1 < len(due):
                self._lanes[(number + 1) % 2].fetch(due[number + 1][0])
            lane = self._lanes[number % 2]
            lane.wait()
            pair[0].grad = None  # its copy is whole now, so the memory may be used again
            yield lane, pair


class _Lane:
    """Staging memory on the CPU for one weight and its gradient; everything in it is of one stream, thus in order."""

    def __init__(self, size: int, device: torch.device) -> None:
        pinned = device.type == "cuda"  # pinned memory is copied while the CPU computes
        self._weight = torch.empty(size, pin_memory=pinned)
        self._gradient = torch.empty(size, pin_memory=pinned)
        self._arrived = torch.get_device_module(device).Event()
        self.weight = self.gradient = self._weight

    def fetch(self, weight: Tensor) -> None:
        """Send for a weight and its gradient."""
        self.weight = self._weight[: weight.numel()].view(weight.shape)
        self.gradient = self._gradient[: weight.numel()].view(weight.shape)
        self.weight.copy_(weight, non_blocking=True)
        self.gradient.copy_(weight.grad, non_blocking=True)  # type: ignore[arg-type]
        self._arrived.record()

    def wait(self) -> None:
        """Wait until both are here."""
        self._arrived.synchronize()
