"""Whether bf16 pays on a processor that has it: one layer of the GPT is timed, once per machine and size of model."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import torch
from torch import nn

from utils.config import TrainConfig
from utils.speech.precision import Measurement, choose_fastest, machine, measurement, time_in_turns
from utils.training.model_size import ModelSize
from utils.training.optimizations import optimized_gpt
from utils.xtts.device import Precision

POSITIONS = 256  # about those of a clip
ROUNDS = 3


def choose_by_time(precision: Precision, size: ModelSize, path: Path) -> Precision:
    """Return fp32 instead of a processor's bf16 where that is not clearly faster; ``path`` has earlier measurements."""
    if precision.reason.why != "cpu_bf16":
        return precision
    measured = measurement(path, key(size), partial(measure_layer, size))
    name, reason = choose_fastest(measured.gpt, measured.date)
    return Precision("bf16" if name == "bf16" else "no", reason)


def key(size: ModelSize) -> str:
    """Return what a measurement is valid for."""
    return f"{machine()} | training {size.dim} / {size.heads}"


def measure_layer(size: ModelSize) -> Measurement:
    """Time a layer forward and backward; autocast copies its weights to bf16 each time, as it does in a run."""
    with torch.random.fork_rng(devices=[]):
        gpt = optimized_gpt(replace(size, layers=1), TrainConfig(enable_mixed_precision=False), "cpu")[0]
        layer = gpt.get_submodule("gpt.h.0")
        rows = torch.randn(1, POSITIONS, size.dim, requires_grad=True)
        fp32, bf16 = (_update(layer, rows, in_bf16=in_bf16) for in_bf16 in (False, True))
        seconds = time_in_turns({"fp32": fp32, "bf16": bf16}, ROUNDS)
    return Measurement(seconds, {}, datetime.now(UTC).date().isoformat())


def _update(layer: nn.Module, rows: torch.Tensor, *, in_bf16: bool) -> Callable[[], object]:
    def update() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=in_bf16):
            made = layer(rows)
        (made[0] if isinstance(made, tuple) else made).float().sum().backward()

    return update
