"""A training that lasts a given time, on any device, and goes on where it was stopped.

The time that was spent is a part of the state, so the schedule of a training that was interrupted is that of one that
was not.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

WARMUP = 100  # steps
LAST = 0.03  # share of the highest rate at the end
EMA = 0.999
GRADIENT = 5.0
BETAS = 0.8, 0.99

Figures = dict[str, float]
Tensors = tuple[Tensor, ...] | list[Tensor]
# Yields the loss of each module in turn, by its name; a module is updated before the next loss is computed.
Step = Callable[[float, np.random.Generator], Iterator[tuple[str, Tensor]]]


@dataclass
class Training:
    """One training of one or more modules, whose first one is wanted and the others help.

    Attributes:
        out: Where the state (``NAME.state.pt``) and the curve (``NAME.jsonl``) are written.
        rates: Highest learning rate of each module.
        every: Seconds between two saves.
    """

    out: Path
    name: str
    modules: Mapping[str, nn.Module]
    rates: Mapping[str, float]
    seconds: float
    every: float

    def __post_init__(self) -> None:
        self.wanted = next(iter(self.modules))
        self.averaged = AveragedModel(self.modules[self.wanted], multi_avg_fn=_average)
        self.optimizers = {
            name: torch.optim.AdamW(module.parameters(), self.rates[name], BETAS, weight_decay=0.01)
            for name, module in self.modules.items()
        }
        self.spent, self.steps = 0.0, 0
        if self.path.is_file():
            self._restore()

    @property
    def path(self) -> Path:
        return self.out / f"{self.name}.state.pt"

    def run(self, step: Step, measure: Callable[[nn.Module], Figures]) -> nn.Module:
        """Train until the time is over and return the averaged weights of the wanted module."""
        began, before = time.monotonic(), self.spent
        saved, losses = self.spent, dict[str, list[float]]()
        while self.spent < self.seconds:
            progress = self.spent / self.seconds
            for name, loss in step(progress, np.random.default_rng([1, self.steps])):
                self._update(name, loss, progress)
                losses.setdefault(name, []).append(loss.item())
            self.steps += 1
            self.averaged.update_parameters(self.modules[self.wanted])
            self.spent = before + time.monotonic() - began
            if self.spent - saved >= self.every or self.spent >= self.seconds:
                saved = self.spent
                means = {name: round(sum(values) / len(values), 4) for name, values in losses.items()}
                self._save(means | measure(self.averaged.module))
                losses.clear()
        trained: nn.Module = self.averaged.module
        return trained

    def _update(self, name: str, loss: Tensor, progress: float) -> None:
        module, optimizer = self.modules[name], self.optimizers[name]
        rise, fall = min(1.0, (self.steps + 1) / WARMUP), 0.5 + 0.5 * math.cos(math.pi * progress)
        for group in optimizer.param_groups:
            group["lr"] = self.rates[name] * rise * (LAST + (1 - LAST) * fall)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(module.parameters(), GRADIENT)
        optimizer.step()

    def _save(self, figures: Figures) -> None:
        state = {
            "modules": {name: module.state_dict() for name, module in self.modules.items()},
            "optimizers": {name: optimizer.state_dict() for name, optimizer in self.optimizers.items()},
            "averaged": self.averaged.state_dict(),
            "spent": self.spent,
            "steps": self.steps,
        }
        written = self.path.with_suffix(".new")
        torch.save(state, written)
        written.replace(self.path)
        line = json.dumps({"seconds": round(self.spent), "step": self.steps, **figures})
        with (self.out / f"{self.name}.jsonl").open("a", encoding="utf-8") as file:
            file.write(line + "\n")
        print(self.name, line, flush=True)

    def _restore(self) -> None:
        device = next(self.modules[self.wanted].parameters()).device
        state: dict[str, Any] = torch.load(self.path, map_location=device, weights_only=True)
        for name, module in self.modules.items():
            module.load_state_dict(state["modules"][name])
            self.optimizers[name].load_state_dict(state["optimizers"][name])
        self.averaged.load_state_dict(state["averaged"])
        self.spent, self.steps = state["spent"], state["steps"]


def _average(averages: Tensors, current: Tensors, count: Tensor | int) -> None:
    """Forget the first steps soon, and later ones slowly."""
    weight = max(1 - EMA, 9 / (10 + float(count)))
    torch._foreach_lerp_(averages, current, weight)  # as torch's own averages do


def autocast(device: torch.device) -> torch.autocast:
    """Return bf16 where the device multiplies it fast."""
    fast = device.type == "cuda" or torch.cpu.get_capabilities().get("avx512_bf16", False)
    return torch.autocast(device.type, torch.bfloat16, enabled=fast)
