"""Estimate the memory that a run needs, and split its batch so that it fits.

The estimate traces an update of the real model (``memory_trace``) and measures nothing on the device itself; ``probe``
does.
"""

import bisect
import contextlib
import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from utils.config import TrainConfig
from utils.core import wording
from utils.core.errors import ConfigError
from utils.training.errors import PlanDoesNotFitError
from utils.training.facts import MemoryPlan
from utils.training.memory_trace import trace_update
from utils.training.model_size import ClipSize, ModelSize
from utils.xtts.device import GPUS, choose_precision, free_and_total, gpu_name, own_device

GIB = 2**30
RESERVE = {
    **dict.fromkeys(GPUS, round(0.6 * GIB)),  # context and libraries of the GPU; an assumption, not measured
    "cpu": round(0.8 * GIB),  # this process after its imports: 757 MiB on Linux with torch 2.11
}
FRAGMENTATION = 0.1  # share added for gaps between blocks of memory; an assumption
REMEDIES: tuple[tuple[str, dict[str, object]], ...] = (
    ("enable_sdpa", {"enable_sdpa": True}),
    ("enable_mixed_precision", {"enable_mixed_precision": True}),
    ("enable_grad_checkpoint", {"enable_grad_checkpoint": True, "checkpoint_every": 1, "use_compile": False}),
    ("ema_device cpu", {"ema_device": "cpu"}),
    ("optimizer adamw_8bit", {"optimizer": "adamw_8bit", "offload_optimizer": False}),
    ("offload_optimizer", {"optimizer": "adamw", "offload_optimizer": True}),
    ("enable_lora", {"enable_lora": True, "offload_optimizer": False, "use_compile": False}),
)


@dataclass(frozen=True)
class Device:
    """A device to train on: its kind, the bytes a run may use, its name, and whether it computes in half precision."""

    kind: str  # "cuda", "mps", "xpu" or "cpu"
    memory: int
    name: str
    half: bool

    @classmethod
    def gpu(cls, gigabytes: float) -> "Device":
        """A GPU with the memory that its product name states."""
        return cls("cuda", round(gigabytes * 1e9), f"{gigabytes:g} GB GPU", half=True)

    @classmethod
    def detect(cls, config: TrainConfig) -> "Device":
        """The device that a run would use on this machine."""
        own = own_device(config.device)
        half = choose_precision(own).dtype != "no"
        free, total = free_and_total(own)
        if own.type == "cpu":
            return cls("cpu", free // config.num_processes, "CPU", half)
        return cls(own.type, min(free, round(total * config.max_memory_fraction)), gpu_name(own), half)


def estimate(
    config: TrainConfig, device: Device, size: ModelSize | None = None, clip: ClipSize | None = None
) -> MemoryPlan:
    """Estimate the peak memory of one update in which every clip is the longest.

    By default, the model is the configured base model, and the clip the longest that the settings allow.
    """
    size = size or ModelSize.from_config(config)
    clip = clip or ClipSize.from_config(config)
    half = config.enable_mixed_precision and device.half
    if device.kind == "mps":  # its memory is the RAM, so nothing is saved by moving there
        config = changed(config, {"offload_optimizer": False, "ema_device": "auto"})
    parts = trace_update(config, size, clip, on_gpu=device.kind != "cpu", half=half)
    parts["reserve"] = RESERVE[device.kind] + round(FRAGMENTATION * sum(parts.values()))
    needed = sum(parts.values())
    return MemoryPlan(needed <= device.memory, parts, needed, device.memory)


# Long because there are three ends: a measured batch, an estimated one, and none that fits.
def fit_batch(
    config: TrainConfig,
    device: Device,
    size: ModelSize | None = None,
    clip: ClipSize | None = None,
    *,
    largest: int | None = None,
) -> tuple[TrainConfig, MemoryPlan]:
    """Split the same effective batch into as few parts as fit; return those settings and their estimate.

    Only batch_size, batch_tokens and grad_acumm are changed. The estimate decides what fits, unless the ``largest``
    batch was measured.
    """
    splits = list(_splits(config, clip or ClipSize.from_config(config)))
    if largest is not None:
        chosen = next((split for split in splits if split.batch_size <= largest), splits[-1])
        return chosen, estimate(chosen, device, size, clip)

    @functools.cache
    def estimated(number: int) -> MemoryPlan:
        return estimate(splits[number], device, size, clip)

    number = 0  # a single batch needs no gradients of earlier ones, so the search starts after it
    if not estimated(0).fits:
        number = bisect.bisect_left(range(len(splits)), x=True, lo=1, key=lambda number: estimated(number).fits)
    if number < len(splits):
        return splits[number], estimated(number)
    needed = estimated(len(splits) - 1).needed
    raise PlanDoesNotFitError(needed, device.memory, tuple(_remedies(splits[-1], device, needed, size, clip)))


def _splits(config: TrainConfig, clip: ClipSize) -> Iterator[TrainConfig]:
    """Yield every division of the effective batch into equal parts, the largest parts first."""
    whole = config.grad_acumm * (config.batch_tokens or config.batch_size)
    field = "batch_tokens" if config.batch_tokens else "batch_size"
    minimum = clip.positions if config.batch_tokens else 1
    for count in range(1, whole + 1):
        if whole % count == 0 and whole // count >= minimum:
            with contextlib.suppress(ConfigError):  # beyond the bounds of the settings
                yield changed(config, {field: whole // count, "grad_acumm": count})


def changed(config: TrainConfig, values: Mapping[str, object]) -> TrainConfig:
    return TrainConfig.parse({**config.model_dump(), **values})


def batch_description(config: TrainConfig) -> str:
    if config.batch_tokens:
        return f"{config.batch_tokens} positions x {config.grad_acumm}"
    return f"{config.batch_size} clips x {config.grad_acumm} = {config.batch_size * config.grad_acumm} per step"


def _remedies(
    config: TrainConfig, device: Device, needed: int, size: ModelSize | None, clip: ClipSize | None
) -> Iterator[str]:
    """Enable the settings that save memory one after another until the run fits, and name them."""
    for name, values in REMEDIES:
        try:
            tried = changed(config, values)
        except ConfigError:  # excludes a setting that is on
            continue
        result = estimate(tried, device, size, clip)
        if result.needed < needed:
            yield f"{name} ({wording.size(result.needed)})"
            config = tried
            needed = result.needed
        if result.fits:
            return
