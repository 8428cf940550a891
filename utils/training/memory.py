"""What a run will need of a device's memory, before it starts: calculated by part, and fitted by cutting the batch.

Nothing here was measured on the GPU in question; ``python -m utils memory-test`` does that with one real step.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from utils.config import TrainConfig
from utils.core.errors import AmharicTtsError, ConfigError
from utils.core.paths import TINY_MODEL
from utils.core.storage import read_json
from utils.training.memory_parts import Longest, ModelShape
from utils.training.memory_peaks import Device, Step, arithmetic, fixed_bytes
from utils.xtts.files import CONFIG_FILE, TINY, TINY_RANDOM

GIB = 2**30
CONTEXT = {
    "cuda": round(0.6 * GIB),  # for the driver and its libraries: set aside, not measured
    "cpu": round(0.8 * GIB),  # this process after its imports: 757 MiB here, Linux, torch 2.11, 21 November 2026
}
ALLOWANCE_SHARE = 0.1  # for gaps between blocks of memory: likewise
MARK = "calculated, not measured on this device"
PARTS = {
    "weights": "the model in fp32",
    "gradients": "one for each trained weight",
    "optimiser": "its moments",
    "ema": "average of the trained weights",
    "copies": "weights in half precision, for the matrix products",
    "activations": "what the GPT keeps for the backward pass",
    "conditioning": "what the part keeps that listens to the reference",
    "heads": "logits and losses",
    "workspace": "intermediate results of one layer, or of the update",
    "exchange": "what the processes send each other",
    "allowance": "set aside for the driver and for gaps",
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


class NoRoomError(AmharicTtsError):
    """A run does not fit into the memory of the device, whatever its batch."""


@dataclass(frozen=True)
class MemoryPlan:
    """What a run needs at its peak.

    Attributes:
        parts: Bytes by part at the moment that needs most; their sum is the peak.
        peak: Bytes at that moment.
        available: Bytes that there are.
    """

    parts: dict[str, int]
    peak: int
    available: int

    @property
    def fits(self) -> bool:
        """Tell whether there is room."""
        return self.peak <= self.available

    @property
    def sentence(self) -> str:
        """Give the verdict in words."""
        peak, room = self.peak / GIB, self.available / GIB
        verdict = f"fits into {room:.1f} GiB" if self.fits else f"does not fit into {room:.1f} GiB"
        return f"A peak of {peak:.1f} GiB {verdict} ({MARK})."


def detect(config: TrainConfig) -> Device:
    """Look at the device that a run would use on this machine."""
    import psutil
    import torch

    from utils.xtts.dtypes import choose_precision

    kind: Literal["cuda", "cpu"] = "cuda" if torch.cuda.is_available() else "cpu"
    half = choose_precision(kind).dtype != "no"
    if kind == "cpu":
        return Device(kind, psutil.virtual_memory().available // config.num_processes, "the processor", half)
    found = torch.cuda.get_device_properties(0)
    free, total = torch.cuda.mem_get_info(0)
    return Device(kind, min(free, round(total * config.max_memory_fraction)), found.name, half)


def gpu_of(gigabytes: float) -> Device:
    """Return a GPU as the label on its box describes it: a little of it is never to be had."""
    return Device("cuda", round(gigabytes * 1e9), f"a GPU of {gigabytes:g} GB", half=True)


def shape_of(config: TrainConfig) -> ModelShape:
    """Return the sizes of the model that a run starts from; no weights are read, or need to be there."""
    if config.custom_model:
        place = Path(config.custom_model)
        return _described(place if place.is_dir() else place.parent)
    if config.version == TINY:
        return _described(TINY_MODEL)
    if config.version == TINY_RANDOM:
        from utils.xtts.random_model import RandomModelSize
        from utils.xtts.random_vocabulary import small_vocabulary

        tiny = RandomModelSize()
        rows = small_vocabulary(tiny.tokens).size
        return ModelShape(layers=tiny.layers, dim=tiny.dim, heads=tiny.heads, text_rows=rows)
    return ModelShape()


def _described(folder: Path) -> ModelShape:
    """Read the sizes in a model folder's config.json; a lone .pth is taken for one of the published size."""
    path = folder / CONFIG_FILE
    if not path.is_file():
        return ModelShape()
    try:
        sizes = read_json(path)["model_args"]
        names = ("gpt_layers", "gpt_n_model_channels", "gpt_n_heads", "gpt_number_text_tokens")
        layers, dim, heads, rows = (int(sizes[name]) for name in names)
        audio_rows = int(sizes.get("gpt_num_audio_tokens", ModelShape.audio_rows))
    except (OSError, ValueError, LookupError, TypeError, OverflowError) as error:
        raise ConfigError(f"custom_model: {path} does not tell the sizes of a model: {error!r}.") from error
    return ModelShape(layers=layers, dim=dim, heads=heads, text_rows=rows, audio_rows=audio_rows)


def longest_of(config: TrainConfig) -> Longest:
    """Return the longest clip that the settings let in."""
    return Longest.allowed(config.max_audio_length, config.max_text_length)


def batch_words(config: TrainConfig) -> str:
    """Write a batch and its accumulation."""
    if config.batch_tokens:
        return f"{config.batch_tokens} positions x {config.grad_acumm}"
    return f"{config.batch_size} clips x {config.grad_acumm} = {config.batch_size * config.grad_acumm} an update"


def predict(shape: ModelShape, config: TrainConfig, longest: Longest, device: Device) -> MemoryPlan:
    """Calculate the peak of an update in which every clip is the longest.

    Args:
        shape: The model.
        config: The settings of the run.
        longest: The longest clip.
        device: Where it computes.
    """
    fixed, step = fixed_bytes(shape, config, device), Step(shape, config, longest, arithmetic(config, device))
    parts = max((fixed | moment for moment in step.moments()), key=lambda moment: sum(moment.values()))
    parts["allowance"] = CONTEXT[device.kind] + round(ALLOWANCE_SHARE * sum(parts.values()))
    return MemoryPlan({name: parts.get(name, 0) for name in PARTS}, sum(parts.values()), device.memory)


def plan(config: TrainConfig, shape: ModelShape, longest: Longest, device: Device) -> TrainConfig:
    """Cut the same effective batch such that it fits: as many clips at once as there is room for.

    Args:
        config: The settings of the run; nothing but batch_size, batch_tokens and grad_acumm is changed.
        shape: The model.
        longest: The longest clip.
        device: Where it computes.
    """
    for cut in cuts(config, longest):
        if predict(shape, cut, longest, device).fits:
            return cut
    smallest = predict(shape, [*cuts(config, longest)][-1], longest, device)
    found = remedies(config, shape, longest, device)
    raise NoRoomError(smallest.sentence, hint=advice(found))


def cuts(config: TrainConfig, longest: Longest) -> Iterator[TrainConfig]:
    """Yield every cut of the effective batch into equal parts, the largest part first."""
    whole = config.grad_acumm * (config.batch_tokens or config.batch_size)
    field = "batch_tokens" if config.batch_tokens else "batch_size"
    least = longest.positions if config.batch_tokens else 1
    for count in (1,) if config.step_in_backward else range(1, whole + 1):
        if whole % count == 0 and whole // count >= least:
            with contextlib.suppress(ConfigError):  # a part beyond the bounds of the settings
                yield changed(config, {field: whole // count, "grad_acumm": count})


def changed(config: TrainConfig, values: Mapping[str, object]) -> TrainConfig:
    """Return other settings, checked as any."""
    return TrainConfig.parse({**config.model_dump(), **values})


class Remedy(NamedTuple):
    """A switch that saves memory, with what is needed once it and those before it are on."""

    name: str
    plan: MemoryPlan


def remedies(config: TrainConfig, shape: ModelShape, longest: Longest, device: Device) -> list[Remedy]:
    """Return the switches that would help, one on top of the other, until one of them suffices."""
    found: list[Remedy] = []
    smallest = [*cuts(config, longest)][-1]
    peak = predict(shape, smallest, longest, device).peak
    for name, values in REMEDIES:
        try:
            tried = changed(smallest, values)
        except ConfigError:  # it excludes a switch that is on
            continue
        outcome = predict(shape, tried, longest, device)
        if outcome.peak < peak:
            found.append(Remedy(name, outcome))
            smallest, peak = tried, outcome.peak
        if outcome.fits:
            break
    return found


def advice(found: Sequence[Remedy]) -> str:
    """Say which switches would make room."""
    steps = ", then ".join(f"{name} ({outcome.peak / GIB:.1f} GiB)" for name, outcome in found)
    if found and found[-1].plan.fits:
        return f"These switches would make room: {steps}."
    return f"Even that is not enough: {steps}." if found else "No switch would help: choose another device."


def in_gib(size: int) -> str:
    """Write bytes for a person."""
    return f"{size / GIB:.2f} GiB"


def table(outcome: MemoryPlan) -> str:
    """Write a plan as lines for a person."""
    lines = [f"{name:<24} {size / GIB:7.2f} GiB  {PARTS[name]}" for name, size in outcome.parts.items() if size]
    return "\n".join([*lines, f"{'peak':<24} {outcome.peak / GIB:7.2f} GiB  of {outcome.available / GIB:.2f} GiB"])
