"""A training that can be killed: every step has its own seed, and the state is saved every so often.

Each step draws from a generator made of the seed and its number, so an interrupted run ends with the same numbers.
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

from tools.tiny_voice.progress import Progress
from utils.core.storage import atomic_writer, write_atomically

STATE, CURVE = "state.pt", "curve.json"
SAVES = 40  # over a whole training: what a kill loses is a fortieth of it
POINTS = 200  # of the curve
WARMUP = 0.03  # share of the steps over which the rate rises
LAST_RATE = 0.05  # share of the highest rate at the end
MAX_GRADIENT = 1.0

Figures = dict[str, float]
# Yields the loss of each module in turn, by its name; the module is updated before the next loss is computed.
Step = Callable[[int, np.random.Generator], Iterator[tuple[str, Tensor]]]


@dataclass
class TrainingLoop:
    """One training of one or more modules."""

    folder: Path  # of the state and the curve
    modules: Mapping[str, nn.Module]  # the first one is what is trained; others help
    steps: int
    rate: float  # highest learning rate
    seed: int
    progress: Progress

    def run(self, step: Step) -> None:
        """Train to the end."""
        optimizers = {
            name: torch.optim.AdamW(module.parameters(), lr=self.rate, betas=(0.8, 0.99), weight_decay=0.01)
            for name, module in self.modules.items()
        }
        curve = self._restore(optimizers)
        first = int(curve[-1]["step"]) if curve else 0
        every, often = max(1, self.steps // SAVES), max(1, self.steps // POINTS)
        losses: dict[str, list[float]] = {name: [] for name in self.modules}
        began = time.monotonic()
        self._train(mode=True)
        for number in range(first, self.steps):
            for name, loss in step(number, np.random.default_rng([self.seed, number])):
                self._update(self.modules[name], optimizers[name], number, loss)
                losses[name].append(loss.item())
            done = number + 1
            is_saved = done % every == 0 or done == self.steps
            if is_saved or done % often == 0:
                means = {name: round(float(np.mean(values)), 5) for name, values in losses.items() if values}
                curve.append({"step": done, **means})
                losses = {name: [] for name in self.modules}
            if is_saved:
                self._save(optimizers, curve)
            left = (time.monotonic() - began) / (done - first) * (self.steps - done)
            self.progress.at(done, self.steps, left, _format(curve[-1]) if curve else "")
        self._train(mode=False)

    def _train(self, *, mode: bool) -> None:
        for module in self.modules.values():
            module.train(mode)

    def _update(self, module: nn.Module, optimizer: torch.optim.Optimizer, number: int, loss: Tensor) -> None:
        for group in optimizer.param_groups:
            group["lr"] = self.rate * _rate_share(number, self.steps)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(module.parameters(), MAX_GRADIENT)
        optimizer.step()

    def _save(self, optimizers: Mapping[str, torch.optim.Optimizer], curve: list[Figures]) -> None:
        state = {
            "modules": {name: module.state_dict() for name, module in self.modules.items()},
            "optimizers": {name: optimizer.state_dict() for name, optimizer in optimizers.items()},
            "curve": curve,
        }
        with atomic_writer(self.folder / STATE) as file:
            torch.save(state, file)
        write_atomically(self.folder / CURVE, json.dumps(curve))

    def _restore(self, optimizers: Mapping[str, torch.optim.Optimizer]) -> list[Figures]:
        """Continue from the saved state; return the curve so far."""
        if not (self.folder / STATE).is_file():
            return []
        state: dict[str, Any] = torch.load(self.folder / STATE, map_location="cpu", weights_only=True)
        for name, module in self.modules.items():
            module.load_state_dict(state["modules"][name])
            optimizers[name].load_state_dict(state["optimizers"][name])
        curve: list[Figures] = state["curve"]
        self.progress.say(f"continues after step {curve[-1]['step']:,.0f}")
        return curve


def _rate_share(number: int, steps: int) -> float:
    """Return what share of the highest rate a step has."""
    rise = min(1.0, (number + 1) / max(1, round(WARMUP * steps)))
    fall = 0.5 * (1 + math.cos(math.pi * number / steps))
    return rise * (LAST_RATE + (1 - LAST_RATE) * fall)


def _format(figures: Figures) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in figures.items() if name != "step")
