"""AdamW with its state in RAM instead of GPU memory: torch's own AdamW, applied on the CPU one weight at a time."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.adamw import adamw

from utils.training.errors import SettingRefusedError

State = dict[str, Tensor]
Group = dict[str, Any]
CPU = torch.device("cpu")


def apply_adamw(weight: Tensor, gradient: Tensor, state: State, group: Group) -> None:
    """Update one weight in place."""
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
        amsgrad=False,
        beta1=beta1,
        beta2=beta2,
        lr=group["lr"],
        weight_decay=group["weight_decay"],
        eps=group["eps"],
        maximize=False,
    )


class OffloadedAdamW(Optimizer):
    """AdamW with its state in RAM.

    Each update copies one weight and its gradient to the CPU, updates the weight there and copies it back, while the
    next one is being transferred. No copy of the weights stays in RAM. On a CPU, weights are updated in place, bit for
    bit as by torch.optim.AdamW, all of whose ``settings`` are required. ``staged`` forces the copies, for tests.
    """

    def __init__(self, params: Iterable[Any], *, staged: bool | None = None, **settings: Any) -> None:  # noqa: ANN401
        super().__init__(params, settings)
        for weight in (weight for group in self.param_groups for weight in group["params"]):
            if weight.dtype != torch.float32:
                raise SettingRefusedError("offload_optimizer", "not_float32", str(weight.dtype))
        self.staged = staged
        self._buffers: tuple[_StagingBuffer, _StagingBuffer] | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # noqa: ANN401 - as torch
        """Update every weight that has a gradient, and drop the gradient."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        staged = []
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                if weight.device.type != "cpu" if self.staged is None else self.staged:
                    staged.append((weight, group))
                else:
                    apply_adamw(weight, weight.grad, self._state(weight), group)
                    weight.grad = None
        if staged:
            self._update_staged(staged)
        return loss

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state; its moments stay on the CPU, while torch would move them to the weights' device."""
        super().load_state_dict({**state_dict, "state": {}})
        weights = (weight for group in self.param_groups for weight in group["params"])
        numbers = (number for group in state_dict["param_groups"] for number in group["params"])
        for number, weight in zip(numbers, weights, strict=True):
            if number in state_dict["state"]:
                self.state[weight] = {name: part.to(CPU) for name, part in state_dict["state"][number].items()}

    def _state(self, weight: Tensor) -> State:
        """Return the moments of a weight, named as torch.optim.AdamW does, so that checkpoints are interchangeable."""
        state: State = self.state[weight]
        if not state:
            shapes = {"step": torch.Size(), "exp_avg": weight.shape, "exp_avg_sq": weight.shape}
            state.update({name: torch.zeros(shape, dtype=torch.float32) for name, shape in shapes.items()})
        return state

    # Long because the order of copies and kernels on both streams is the point, and is read as a whole.
    def _update_staged(self, due: list[tuple[Tensor, Group]]) -> None:
        """Update weights of another device; the next weight arrives while one is updated."""
        device = due[0][0].device
        backend = torch.get_device_module(device)
        if self._buffers is None:
            size = max(weight.numel() for group in self.param_groups for weight in group["params"])
            self._buffers = _StagingBuffer(size, device), _StagingBuffer(size, device)
            self._stream = backend.Stream()
        self._stream.wait_stream(backend.current_stream())
        with backend.stream(self._stream):
            self._buffers[0].fetch(due[0][0])
            for number, (weight, group) in enumerate(due):
                if number + 1 < len(due):
                    self._buffers[(number + 1) % 2].fetch(due[number + 1][0])
                buffer = self._buffers[number % 2]
                buffer.arrived.synchronize()
                weight.grad = None  # the copy is complete
                apply_adamw(buffer.weight, buffer.gradient, self._state(weight), group)
                weight.copy_(buffer.weight, non_blocking=True)
        backend.current_stream().wait_stream(self._stream)


class _StagingBuffer:
    """CPU buffer for one weight and its gradient; all its transfers use one stream."""

    def __init__(self, size: int, device: torch.device) -> None:
        pinned = device.type == "cuda"  # pinned memory is copied asynchronously
        self._weight = torch.empty(size, pin_memory=pinned)
        self._gradient = torch.empty(size, pin_memory=pinned)
        self.arrived = torch.get_device_module(device).Event()

    def fetch(self, weight: Tensor) -> None:
        self.weight = self._weight[: weight.numel()].view(weight.shape)
        self.gradient = self._gradient[: weight.numel()].view(weight.shape)
        self.weight.copy_(weight, non_blocking=True)
        self.gradient.copy_(weight.grad, non_blocking=True)  # type: ignore[arg-type]
        self.arrived.record()
