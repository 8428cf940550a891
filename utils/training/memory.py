"""Estimate the memory that a run needs, and split its batch so that it fits.

The estimate traces an update of the real model (``memory_trace``). Nothing is measured on the device itself;
``python -m utils memory-test`` does that with a real update.
"""

import bisect
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import torch

from utils.config import TrainConfig
from utils.core.errors import AmharicTtsError, ConfigError
from utils.training.memory_trace import trace_update
from utils.training.model_size import ClipSize, ModelSize

GIB = 2**30
RESERVE = {
    "cuda": round(0.6 * GIB),  # CUDA context and libraries; an assumption, not measured
    "cpu": round(0.8 * GIB),  # this process after its imports: 757 MiB on Linux with torch 2.11
}
FRAGMENTATION = 0.1  # share added for gaps between blocks of memory; an assumption
PARTS = {
    "weights": "model parameters in fp32",
    "gradients": "one per trained parameter",
    "optimizer": "optimizer state, for example the two moments of AdamW",
    "ema": "moving average of the weights",
    "activations": "activations and temporary tensors",
    "communication": "parameters gathered from other processes (FSDP)",
    "reserve": "reserve for the driver and for fragmentation",
}
REMEDIES: tuple[tuple[str, dict[str, object]], ...] = (
    ("enable_sdpa", {"enable_sdpa": True}),
    ("enable_mixed_precision", {"enable_mixed_precision": True}),
    ("enable_grad_checkpoint", {"enable_grad_checkpoint": True, "checkpoint_every": 1, "use_compile": False}),
    ("ema_device cpu", {"ema_device": "cpu"}),
    ("optimizer adamw_8bit", {"optimizer": "adamw_8bit", "offload_optimizer": False, "step_in_backward": False}),
    ("offload_optimizer", {"optimizer": "adamw", "offload_optimizer": True, "step_in_backward": False}),
    ("enable_lora", {"enable_lora": True, "offload_optimizer": False, "use_compile": False}),
)


class NotEnoughMemoryError(AmharicTtsError):
    """A run does not fit into the device's memory, whatever its batch size."""


@dataclass(frozen=True)
class Device:
    """A device to train on: its kind, the bytes a run may use, its name, and whether it computes in half precision."""

    kind: Literal["cuda", "cpu"]
    memory: int
    name: str
    half: bool

    @classmethod
    def gpu(cls, gigabytes: float) -> "Device":
        """Return a GPU with the memory that its product name states."""
        return cls("cuda", round(gigabytes * 1e9), f"{gigabytes:g} GB GPU", half=True)

    @classmethod
    def detect(cls, config: TrainConfig) -> "Device":
        """Return the device that a run would use on this machine."""
        import psutil

        from utils.xtts.device import choose_precision

        kind: Literal["cuda", "cpu"] = "cuda" if torch.cuda.is_available() else "cpu"
        half = choose_precision(kind).dtype != "no"
        if kind == "cpu":
            return cls(kind, psutil.virtual_memory().available // config.num_processes, "CPU", half)
        free, total = torch.cuda.mem_get_info(0)
        memory = min(free, round(total * config.max_memory_fraction))
        return cls(kind, memory, torch.cuda.get_device_name(0), half)


@dataclass(frozen=True)
class MemoryEstimate:
    """Bytes by part at the peak of an update, and the bytes available."""

    parts: dict[str, int]
    available: int

    @property
    def peak(self) -> int:
        """Return the bytes needed at the peak."""
        return sum(self.parts.values())

    @property
    def fits(self) -> bool:
        """Tell whether the peak is within the available memory."""
        return self.peak <= self.available

    @property
    def summary(self) -> str:
        """Return the result as a sentence."""
        verdict = "fits" if self.fits else "does not fit"
        return f"Needs {self.peak / GIB:.1f} of {self.available / GIB:.1f} GiB (estimated): {verdict}."

    @property
    def table(self) -> str:
        """Return the parts as lines of text."""
        lines = [f"{name:<24} {size / GIB:7.2f} GiB  {PARTS[name]}" for name, size in self.parts.items() if size]
        return "\n".join([*lines, f"{'peak':<24} {self.peak / GIB:7.2f} GiB  of {self.available / GIB:.2f} GiB"])


def estimate(
    config: TrainConfig, device: Device, size: ModelSize | None = None, clip: ClipSize | None = None
) -> MemoryEstimate:
    """Estimate the peak memory of one update in which every clip is the longest.

    Args:
        config: Settings of the run.
        device: Device to train on.
        size: Sizes of the model; by default those of the configured base model.
        clip: Size of the longest clip; by default the longest that the settings allow.
    """
    size, clip = size or ModelSize.from_config(config), clip or ClipSize.from_config(config)
    half = config.enable_mixed_precision and device.half
    parts = trace_update(config, size, clip, on_gpu=device.kind == "cuda", half=half)
    parts["reserve"] = RESERVE[device.kind] + round(FRAGMENTATION * sum(parts.values()))
    return MemoryEstimate({name: parts.get(name, 0) for name in PARTS}, device.memory)


def fit_batch(
    config: TrainConfig, device: Device, size: ModelSize | None = None, clip: ClipSize | None = None
) -> tuple[TrainConfig, MemoryEstimate]:
    """Split the same effective batch into as few parts as fit; return those settings and their estimate.

    Args:
        config: Settings of the run. Only batch_size, batch_tokens and grad_acumm are changed.
        device: Device to train on.
        size: Sizes of the model; by default those of the configured base model.
        clip: Size of the longest clip; by default the longest that the settings allow.
    """
    splits = list(_splits(config, clip or ClipSize.from_config(config)))
    estimates = {0: estimate(splits[0], device, size, clip)}  # a single batch needs no gradients of earlier ones

    def fits(number: int) -> bool:
        estimates[number] = estimate(splits[number], device, size, clip)
        return estimates[number].fits

    number = 0
    if not estimates[0].fits:
        number = bisect.bisect_left(range(len(splits)), 1, lo=1, key=lambda split: int(fits(split)))
    if number < len(splits):
        return splits[number], estimates[number]
    smallest = estimates[len(splits) - 1]
    raise NotEnoughMemoryError(smallest.summary, hint=_advice(splits[-1], device, smallest.peak, size, clip))


def _splits(config: TrainConfig, clip: ClipSize) -> Iterator[TrainConfig]:
    """Yield every division of the effective batch into equal parts, the largest parts first."""
    whole = config.grad_acumm * (config.batch_tokens or config.batch_size)
    field = "batch_tokens" if config.batch_tokens else "batch_size"
    minimum = clip.positions if config.batch_tokens else 1
    for count in (1,) if config.step_in_backward else range(1, whole + 1):
        if whole % count == 0 and whole // count >= minimum:
            with contextlib.suppress(ConfigError):  # beyond the bounds of the settings
                yield changed(config, {field: whole // count, "grad_acumm": count})


def changed(config: TrainConfig, values: Mapping[str, object]) -> TrainConfig:
    """Return a validated copy of the settings with other values."""
    return TrainConfig.parse({**config.model_dump(), **values})


def batch_description(config: TrainConfig) -> str:
    """Describe the batch size and its accumulation."""
    if config.batch_tokens:
        return f"{config.batch_tokens} positions x {config.grad_acumm}"
    return f"{config.batch_size} clips x {config.grad_acumm} = {config.batch_size * config.grad_acumm} per step"


def _advice(config: TrainConfig, device: Device, peak: int, size: ModelSize | None, clip: ClipSize | None) -> str:
    """Enable the settings that save memory one after another until the run fits, and name them."""
    steps: list[str] = []
    for name, values in REMEDIES:
        try:
            tried = changed(config, values)
        except ConfigError:  # excludes a setting that is on
            continue
        result = estimate(tried, device, size, clip)
        if result.peak < peak:
            steps.append(f"{name} ({result.peak / GIB:.1f} GiB)")
            config, peak = tried, result.peak
        if result.fits:
            return f"These settings would make it fit: {', then '.join(steps)}."
    return f"Even these settings are not enough: {', then '.join(steps)}." if steps else "Choose another device."
