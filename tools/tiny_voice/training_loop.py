"""A training that can be killed: seeded step by step, saved every so often, and gone on with where it was saved.

Each step draws from a generator of its own, made of the seed and its number, so a run that was interrupted ends with
the same numbers as one that was not.
"""

import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tools.tiny_voice.stages import Progress
from utils.core.storage import atomic_writer, write_atomically

STATE, CURVE = "state.pt", "curve.json"
SAVES = 40  # over a whole training: what a kill loses is a fortieth of it
POINTS = 200  # of the curve
WARMUP = 0.03  # share of the steps over which the rate rises
LAST_RATE = 0.05  # share of the highest rate at the end
LONGEST_GRADIENT = 1.0

Figures = dict[str, float]
Step = Callable[[int, np.random.Generator], tuple[Tensor, Figures]]


@dataclass
class TrainingLoop:
    """One training.

    Attributes:
        folder: Keeps the state to go on from and the curve.
        module: What learns.
        steps: How many updates.
        rate: Highest learning rate.
        seed: Start of all that is random.
        progress: Is told how far it is.
    """

    folder: Path
    module: nn.Module
    steps: int
    rate: float
    seed: int
    progress: Progress

    def run(self, step: Step, judge: Callable[[], Figures] | None = None) -> Figures:
        """Train to the end.

        Args:
            step: Returns the loss of an update, and figures for the curve.
            judge: Measures what has been learnt, at each save; the module is in eval mode then.

        Returns:
            The last point of the curve, with the seconds of a step in this session.
        """
        optimizer = torch.optim.AdamW(self.module.parameters(), lr=self.rate, betas=(0.8, 0.99), weight_decay=0.01)
        curve = self._restore(optimizer)
        first = int(curve[-1]["step"]) if curve else 0
        every, often = max(1, self.steps // SAVES), max(1, self.steps // POINTS)
        sums = _Means()
        began = time.monotonic()
        self.module.train()
        for number in range(first, self.steps):
            loss, figures = step(number, np.random.default_rng([self.seed, number]))
            self._update(optimizer, number, loss)
            sums.add({"loss": float(loss.detach())} | figures)
            done = number + 1
            if done % often == 0 or done == self.steps:
                curve.append({"step": done, **sums.taken()})
            if done % every == 0 or done == self.steps:
                if curve[-1]["step"] != done:
                    curve.append({"step": done, **sums.taken()})
                curve[-1] |= self._evaluation(judge)
                self._save(optimizer, curve)
            left = (time.monotonic() - began) / (done - first) * (self.steps - done)
            self.progress.at(done, self.steps, left, _written(curve[-1]) if curve else "")
        self.module.eval()
        taken = (time.monotonic() - began) / max(1, self.steps - first)
        return {**curve[-1], "seconds_a_step": round(taken, 4)}

    def _update(self, optimizer: torch.optim.Optimizer, number: int, loss: Tensor) -> None:
        for group in optimizer.param_groups:
            group["lr"] = self.rate * _share(number, self.steps)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.module.parameters(), LONGEST_GRADIENT)
        optimizer.step()

    def _evaluation(self, judge: Callable[[], Figures] | None) -> Figures:
        if judge is None:
            return {}
        self.module.eval()
        with torch.no_grad():
            found = judge()
        self.module.train()
        return found

    def _save(self, optimizer: torch.optim.Optimizer, curve: list[Figures]) -> None:
        state = {"module": self.module.state_dict(), "optimizer": optimizer.state_dict(), "curve": curve}
        with atomic_writer(self.folder / STATE) as file:
            torch.save(state, file)
        write_atomically(self.folder / CURVE, json.dumps(curve))

    def _restore(self, optimizer: torch.optim.Optimizer) -> list[Figures]:
        """Go on from what was saved; return the curve so far."""
        if not (self.folder / STATE).is_file():
            return []
        state: dict[str, Any] = torch.load(self.folder / STATE, map_location="cpu", weights_only=True)
        self.module.load_state_dict(state["module"])
        optimizer.load_state_dict(state["optimizer"])
        curve: list[Figures] = state["curve"]
        self.progress.say(f"goes on after step {curve[-1]['step']:,.0f}")
        return curve


class _Means:
    """Means of figures since they were last taken."""

    def __init__(self) -> None:
        self.sums: Figures = {}
        self.count = 0

    def add(self, figures: Figures) -> None:
        self.count += 1
        for name, value in figures.items():
            self.sums[name] = self.sums.get(name, 0.0) + value

    def taken(self) -> Figures:
        means = {name: round(value / max(1, self.count), 5) for name, value in self.sums.items()}
        self.sums, self.count = {}, 0
        return means


def load_trained(module: nn.Module, folder: Path) -> nn.Module:
    """Fill a module with what a finished training left, and put it into eval mode."""
    module.load_state_dict(torch.load(folder / STATE, map_location="cpu", weights_only=True)["module"])
    return module.eval().requires_grad_(requires_grad=False)


def crops(starts: Iterable[int], size: int, track: np.ndarray[Any, Any]) -> Tensor:
    """Cut pieces of one length out of a long array."""
    return torch.from_numpy(np.stack([track[start : start + size] for start in starts]).astype(np.float32))


def _share(number: int, steps: int) -> float:
    """Return what share of the highest rate a step has."""
    rise = min(1.0, (number + 1) / max(1, round(WARMUP * steps)))
    fall = 0.5 * (1 + math.cos(math.pi * number / steps))
    return rise * (LAST_RATE + (1 - LAST_RATE) * fall)


def _written(figures: Figures) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in figures.items() if name != "step")
