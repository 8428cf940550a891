"""What the first batch of a run really used: read while it is computed, not from the settings."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from utils.training.speedups.blocks import compiled
from utils.training.step import TrainStep, unwrap_optimizer
from utils.xtts.kernels import ATTENTION, BYTES, Operators
from utils.xtts.modules import CONDITIONING

DROPOUT = {
    "aten.randint.low": "random bytes",
    "aten.bernoulli_.float": "random numbers",
    "aten.native_dropout.default": "a fused kernel",
}


class _Counts(Operators):  # type: ignore[no-untyped-call]
    """Counts the operators of each part of the model."""

    def __init__(self) -> None:
        super().__init__()
        self.part = ""
        self.calls: Counter[tuple[str, str]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ANN401
        self.calls[self.part, str(func)] += 1
        return super().__torch_dispatch__(func, types, args, kwargs)

    def counts(self, part: str, names: dict[str, str]) -> str:
        """Return how often a part of the model called each of these operators."""
        found = {label: calls for name, label in names.items() if (calls := self.calls[part, name])}
        if BYTES in found:  # which has a softmax too
            del found["unfused"]
        return ", ".join(f"{calls} x {label}" for label, calls in found.items()) or "none"


class FirstBatch:
    """Observes the first batch that is trained, reports what was used, by name, and removes itself."""

    def __init__(self, step: TrainStep, report: Callable[[dict[str, str], tuple[str, ...]], object]) -> None:
        self.step = step
        self.report = report
        self.model: Any = step.packed
        self.operators = None if compiled(self.model.gpt) else _Counts()  # it would turn compilation off
        self.autocast = ""
        present = {name for name, _ in self.model.gpt.named_children()}
        self.parts = {name: name for name in CONDITIONING if name in present} | {"gpt": "gpt.h.0"}
        self._hooks = [
            self.model.register_forward_pre_hook(self._begin),
            self.model.register_forward_hook(self._end, always_call=True),
        ]
        for label, path in self.parts.items():  # the GPT-2 is called layer by layer
            entered = self.model.gpt.get_submodule(path).register_forward_pre_hook(partial(self._enter, label))
            self._hooks.append(entered)

    def _enter(self, part: str, *_: object) -> None:
        device = self.step.ranks.accelerator.device.type
        dtype = str(torch.get_autocast_dtype(device)).removeprefix("torch.")
        self.autocast = dtype if torch.is_autocast_enabled(device) else "off"
        if self.operators:
            self.operators.part = part

    def _begin(self, model: nn.Module, _batch: object) -> None:
        if model.training and self.operators:
            self.operators.__enter__()  # type: ignore[no-untyped-call]

    def _end(self, model: nn.Module, _batch: object, losses: object) -> None:
        if not model.training:  # the evaluation of the base model comes first
            return
        if self.operators:
            self.operators.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        if losses is None:  # it failed, such as for lack of memory, and is tried again
            self.operators = self.operators and _Counts()
            return
        for hook in self._hooks:
            hook.remove()
        kernels = tuple(sorted(self.operators.kernels)) if self.operators else ()
        self.report(self._state() | self._operations(), kernels)

    def _operations(self) -> dict[str, str]:
        if not (operators := self.operators):
            return {"attention calls": "not counted: the layers are compiled"}
        return {
            **{f"attention calls of {part}": operators.counts(part, ATTENTION) for part in self.parts},
            "dropout calls of gpt": operators.counts("gpt", DROPOUT),
        }

    def _state(self) -> dict[str, str]:
        """Read the objects of the run."""
        step = self.step
        scaler = self.step.ranks.accelerator.scaler
        optimizer = unwrap_optimizer(step.optimizer)
        ema = step.ema
        kernel = " (fused)" if optimizer.param_groups[0].get("fused") else ""
        activations = {type(block.mlp.act).__name__ for block in self.model.gpt.gpt.h}
        return {
            "autocast": self.autocast,
            "gradient scaler": f"{scaler.get_scale():g}" if scaler else "off",
            "optimizer": f"{type(optimizer).__name__}{kernel}",
            "EMA": f"decay {ema.decay:g}, {len(ema.shadow)} weights" if ema else "off",
            "activation": ", ".join(sorted(activations)),
            "label smoothing": f"{self.model.label_smoothing:g}",
        }
