"""Test training on a device: a few updates of one kind against those of another."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from utils.config import TrainConfig
from utils.training.batches import BatchSpec, UpdatePlan
from utils.training.clips import ClipLengths, FeatureSource
from utils.training.data_loader import UpdateLoader
from utils.training.errors import NotEnoughMemoryError, SettingRefusedError
from utils.training.memory import changed
from utils.training.model_size import ModelSize
from utils.training.packing import MEL_BANDS, Example, PackedBatch, SpecialTokens, pack
from utils.training.probe import Measured, Probe, probe
from utils.training.resume_state import capture_rng, restore_rng
from utils.training.step import unwrap_optimizer
from utils.xtts.certificate import Check
from utils.xtts.device import choose_precision, is_out_of_memory

Settings = Mapping[str, object]
Compare = Callable[[str], Check]
REFERENCE = Path(__file__).parent / "data" / "reference.yaml"
UPDATES = 3
RISE = 0.05  # of the loss, on which the gradient is measured: far above the rounding of half precision
MAX_ERROR = 0.02  # of that rise; it is 0.001 on a CPU, and 0.05 where layers are computed again with other dropout


def updates(size: ModelSize, device: torch.device, settings: Settings, *, is_full: bool = False) -> Measured:
    """Train a few updates from the same start; with ``is_full``, memory runs out in the first one."""
    config = changed(TrainConfig.load(REFERENCE), settings)
    with probe(config, size, device) as probed:
        if is_full:
            probed.step.model.register_forward_pre_hook(_fill_memory(device))
        return probed.run([_batch(probed.tokens, config.batch_size)], UPDATES)


def unless_refused(name: str, compare: Compare) -> Check:
    """Test the settings of a run; what the test refuses or has no room for, the run refuses too."""
    try:
        return compare(name)
    except (SettingRefusedError, NotEnoughMemoryError) as error:
        return Check(name, passed=True, detail=f"not tested: {error}")
    except RuntimeError as error:
        if is_out_of_memory(error):
            return Check(name, passed=True, detail="not tested: the memory is full")
        raise


def together(name: str, sizes: Sequence[ModelSize], device: torch.device, settings: Settings, plain: Settings) -> Check:
    """Compare the settings of a run with plain ones, and with dropout its gradient with how the loss rises along it."""
    check = as_plain(name, sizes, device, settings, plain)
    with probe(changed(TrainConfig.load(REFERENCE), settings), sizes[0], device) as probed:
        error = abs(_rise(probed) / RISE - 1)
    detail = f"{check.detail}; with dropout its gradient by {error:.1e} (limit {MAX_ERROR:.0e})"
    passed = check.passed and error <= MAX_ERROR
    return replace(check, passed=passed, detail=detail, kernels=check.kernels + probed.kernels)


def as_plain(name: str, sizes: Sequence[ModelSize], device: torch.device, settings: Settings, plain: Settings) -> Check:
    """Compare the settings of a run with plain ones, without dropout."""
    settings = {**settings, "dropout": 0, "lora_dropout": 0}
    config = changed(TrainConfig.load(REFERENCE), settings)
    if config.optimizer == "adafactor":  # AdamW takes other steps
        plain = {**plain, "optimizer": "adafactor"}
    tolerance = 0.02 if device.type == "cuda" and config.enable_tf32 else 1e-3
    if choose_precision(device, wanted=config.enable_mixed_precision).dtype != "no":
        tolerance = 0.1
    pairs = ((updates(size, device, settings), updates(size, device, {**settings, **plain})) for size in sizes)
    return compared(name, pairs, tolerance)


def _rise(probed: Probe) -> float:
    """Return how much the loss rises where the gradient says ``RISE``, with the same dropout each time."""
    step = probed.step
    batch = _batch(probed.tokens, probed.config.batch_size).to(probed.device)
    accelerator = step.ranks.accelerator

    def loss() -> Tensor:
        torch.manual_seed(0)
        loss: Tensor = step.model.train()(batch).audio / batch.audio_count
        return loss

    accelerator.backward(loss())
    accelerator.unscale_gradients()
    layers = step.packed.gpt.get_submodule("gpt.h").parameters()  # where there is dropout
    gradients = [(weight, weight.grad.clone()) for weight in layers if weight.grad is not None]
    length = RISE / float(get_total_norm([gradient for _, gradient in gradients])) ** 2
    ends = []
    with torch.no_grad():
        for share in (0.5, -1.0):
            for weight, gradient in gradients:
                weight.add_(gradient, alpha=share * length)
            ends.append(float(loss()))
    return ends[0] - ends[1]


def _batch(tokens: SpecialTokens, clips: int) -> PackedBatch:
    random = np.random.default_rng(0)
    return pack([_example(number, random) for number in range(clips)], tokens)


def _example(number: int, random: np.random.Generator) -> Example:
    return Example(
        random.integers(1, 90, 12 + 9 * number).astype(np.int32),
        random.integers(0, 1000, 40 + 15 * number).astype(np.int16),
        random.standard_normal((100, MEL_BANDS)).astype(np.float16),
    )


class _RandomClips(FeatureSource):
    """Twelve clips that are the same each time they are read, also in another process."""

    def __init__(self) -> None:
        examples = [_example(number, np.random.default_rng(number)) for number in range(12)]
        sizes = [(1024 * len(each.codes), len(each.codes), len(each.mel), len(each.ids)) for each in examples]
        self.lengths = ClipLengths(*np.array(sizes).T)

    def read(self, clip: int, reference: int, start: int, frames: int) -> Example:
        mel = _example(reference, np.random.default_rng(reference)).mel
        return _example(clip, np.random.default_rng(clip))._replace(mel=mel[start : start + frames])


def _fill_memory(device: torch.device) -> Callable[..., None]:
    has_failed = False

    def fill(*_: object) -> None:
        nonlocal has_failed
        if not has_failed:
            has_failed = True
            if device.type == "cuda":
                torch.empty(2**46, dtype=torch.uint8, device=device)
            raise torch.OutOfMemoryError("Allocating 64 TiB did not fail.")

    return fill


def compared(name: str, measured: Iterable[tuple[Measured, Measured]], tolerance: float) -> Check:
    """Compare each measurement with its reference; they are computed here, where an error is a result."""
    pairs = list(measured)
    worst = max(difference(one.numbers, other.numbers) for one, other in pairs)
    widest, plain = pairs[-1]
    slower = widest.seconds / plain.seconds
    other = "".join(f"; {name}: {used}" for name, used in widest.parts.items() if used != plain.parts.get(name))
    detail = f"differs by {worst:.1e} (limit {tolerance:.0e}); {slower:.2f} x the time of the reference{other}"
    kernels = tuple(sorted({kernel for one, _ in pairs for kernel in one.kernels}))
    return Check(name, worst <= tolerance, detail, 1000 * widest.seconds, widest.peak / 2**20, kernels)


def difference(numbers: Sequence[float], others: Sequence[float]) -> float:
    """Return the largest relative difference; infinite if anything is not finite."""
    left, right = np.array(numbers), np.array(others)
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return float("inf")
    return float((np.abs(left - right) / np.maximum(np.abs(right), 1e-6)).max())


def _copied_batches(device: torch.device, workers: int) -> list[PackedBatch]:
    source, tokens = _RandomClips(), SpecialTokens(99, 0, 1024, 1025)
    plan, spec = UpdatePlan(source.lengths, 4), BatchSpec(4)
    busy = torch.ones((8192, 8192) if device.type == "cuda" else (8, 8), device=device)
    loader = UpdateLoader(source, plan, tokens, spec, workers=workers, pin=workers > 0 and device.type == "cuda")
    copied = []
    for update in loader.run(0, 2 * len(plan)):
        busy @ busy  # so that copies which nobody waits for come late
        copied += [batch.to(device, non_blocking=workers > 0) for batch in update.batches]
    return copied


def reads(name: str, device: torch.device) -> Check:
    """Compare batches that worker processes read, and that are copied without waiting, with plain copies."""
    copied, plain = (_copied_batches(device, workers) for workers in (2, 0))
    torch.get_device_module(device).synchronize()
    pairs = zip(copied, plain, strict=True)
    wrong = sum(
        not (torch.equal(one.mel, other.mel) and torch.equal(one.numbers, other.numbers)) for one, other in pairs
    )
    return Check(name, wrong == 0, f"{wrong} of {len(plain)} batches differ")


def resumes(name: str, size: ModelSize, device: torch.device, settings: Settings, tolerance: float) -> Check:
    """Repeat updates with dropout after weights, moments and generators were restored."""
    config = changed(TrainConfig.load(REFERENCE), {"dropout": 0.1, **settings})
    with probe(config, size, device) as probed:
        batches = [_batch(probed.tokens, config.batch_size)]
        optimizer, model = unwrap_optimizer(probed.step.optimizer), probed.step.model
        probed.run(batches)
        weights, moments, numbers = deepcopy((model.state_dict(), optimizer.state_dict(), capture_rng()))
        wanted = probed.run(batches).numbers
        model.load_state_dict(weights)
        optimizer.load_state_dict(moments)
        restore_rng(numbers)
        worst = difference(probed.run(batches).numbers, wanted)
    return Check(name, worst <= tolerance, f"differs by {worst:.1e} (limit {tolerance:.0e})")
