"""Where the time of a step goes: by part of the model, forward and backward, and by torch's own operations.

The parts are bounded by hooks: when a module is entered and left, and when the gradient of what it was given is there.
On a GPU every bound waits for the device, which adds a little. What is computed again in a backward pass (gradient
checkpointing) is booked where it happens to fall.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

OPERATIONS = 15
BEFORE = "before the model: data, and for coqui mels and DVAE"


class Stages:
    """A clock with named laps."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.since = time.perf_counter()

    def lap(self, name: str) -> None:
        """Book the time since the last lap under a name."""
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        now = time.perf_counter()
        self.seconds[name] += now - self.since
        self.since = now

    def lapping(self, name: str) -> Callable[..., None]:
        """Return something to be called with anything, which books a lap."""

        def booked(*_: object, **__: object) -> None:
            self.lap(name)

        return booked

    def around(self, module: nn.Module, before: str, forward: str, backward: str) -> list[Any]:
        """Bound a module: what came before it, itself, and what runs backward until the gradient of its result."""

        def leave(_: nn.Module, __: object, made: Any) -> None:  # noqa: ANN401  # a tensor or what transformers returns
            self.lap(forward)
            result = made if isinstance(made, Tensor) else made[0]
            if result.requires_grad:
                result.register_hook(self.lapping(backward))

        return [module.register_forward_pre_hook(self.lapping(before)), module.register_forward_hook(leave)]


@contextmanager
def staged(gpt: Any) -> Iterator[Stages]:  # noqa: ANN401  # coqui's GPT
    """Time the parts of coqui's GPT, in whichever way it is trained."""
    stages = Stages()
    backward = torch.autograd.backward

    def timed(*values: Any, **named: Any) -> None:  # noqa: ANN401  # whatever torch passes
        stages.lap("heads and losses, forward")
        backward(*values, **named)
        stages.lap("conditioning encoder, backward")

    handles = [
        *stages.around(gpt.conditioning_encoder, BEFORE, "conditioning encoder, forward", "perceiver, backward"),
        *stages.around(gpt.conditioning_perceiver, BEFORE, "perceiver, forward", "GPT, backward"),
        *stages.around(gpt.gpt, "embeddings, forward", "GPT, forward", "heads and losses, backward"),
        register_optimizer_step_pre_hook(stages.lapping("clipping and checks")),
        register_optimizer_step_post_hook(stages.lapping("optimiser")),
    ]
    torch.autograd.backward = timed
    try:
        yield stages
    finally:
        torch.autograd.backward = backward
        for handle in handles:
            handle.remove()


def profile(side: Any, updates: int) -> str:  # noqa: ANN401  # one of the two sides
    """Profile some updates of a side behind one that warms up."""
    side.round(1)
    waited = side.loading_seconds()
    with staged(side.gpt) as stages:
        found = side.round(updates)
    waited = side.loading_seconds() - waited
    lines = [f"{found.seconds / updates:.3f} s an update, {found.speed:.3f} clips/s; waiting for data {waited:.3f} s"]
    for name, seconds in sorted(stages.seconds.items(), key=lambda stage: -stage[1]):
        lines.append(f"{name:55}{seconds / updates:9.3f} s{seconds / found.seconds:8.1%}")
    return "\n".join([*lines, "", operations(side)])


def operations(side: Any) -> str:  # noqa: ANN401
    """Return the table of the operations that take longest in one update."""
    kinds = [torch.profiler.ProfilerActivity.CPU]
    order = "self_cpu_time_total"
    if torch.cuda.is_available():
        kinds.append(torch.profiler.ProfilerActivity.CUDA)
        order = "self_device_time_total"
    with torch.profiler.profile(activities=kinds) as made:
        side.round(1)
    return str(made.key_averages().table(sort_by=order, row_limit=OPERATIONS, max_name_column_width=45))
