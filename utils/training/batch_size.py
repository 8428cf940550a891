"""Finding the largest batch by trying: real updates, undone afterwards."""

import contextlib
import copy
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import psutil
import torch
from torch import nn
from torch.optim import Optimizer

from utils.training.memory import NoRoomError
from utils.training.packing import PackedBatch

KEPT_SHARE = 0.9  # of the largest batch that passed, once a larger one has failed: the next clips may fall differently
SAMPLE_SECONDS = 0.002
TEXT_WEIGHT = 0.01


def find_optimal_batch_size(
    start: int, maximum: int, fits: Callable[[int], bool], undo: Callable[[], None] | None = None
) -> int:
    """Return the largest batch that passes, less a tenth where a larger one failed.

    Args:
        start: Tried first.
        maximum: Never exceeded.
        fits: Takes a real step with so many clips; False or ``torch.OutOfMemoryError`` means that it failed. Any other
            error is passed on.
        undo: Called after each trial, whatever came of it.
    """
    if not 1 <= start <= maximum:
        raise ValueError(f"The first batch to try, {start}, has to be from 1 to {maximum}.")
    passed, failed, trial = 0, maximum + 1, start
    while failed - passed > 1:
        if _passes(trial, fits, undo):
            passed = trial
            trial = min(2 * trial, maximum) if failed > maximum else (passed + failed) // 2
        else:
            failed = trial
            trial = (passed + failed) // 2
    if not passed:
        raise NoRoomError(
            "Not even one clip fits into memory.", hint="See what would help with: python -m utils memory-plan."
        )
    return passed if failed > maximum else max(1, int(passed * KEPT_SHARE))


def _passes(size: int, fits: Callable[[int], bool], undo: Callable[[], None] | None) -> bool:
    passed = False
    try:
        with contextlib.suppress(torch.OutOfMemoryError):
            passed = fits(size)
    finally:
        if undo is not None:
            undo()
    return passed


@dataclass(frozen=True)
class Trial:
    """What one update took.

    Attributes:
        seconds: From the forward pass to the end of the update.
        peak: Most bytes in use: of the GPU what torch allocated, else the memory of this process.
        before: Bytes in use when it began.
    """

    seconds: float
    peak: int
    before: int


def try_step(model: nn.Module, optimizer: Optimizer, batch: PackedBatch, *, undo: bool = True) -> Trial:
    """Take an update and undo it: weights, optimiser and random numbers are as before.

    It is taken twice, because the optimiser's memory is there from the end of the first update on only; the time is
    that of the second.

    Args:
        model: Takes a batch and returns both summed losses.
        optimizer: For the weights of that model.
        batch: On the device of the model.
        undo: Put everything back; without it, no copies lie in RAM meanwhile.
    """
    device = batch.mel.device
    seconds = 0.0
    with untouched(model, optimizer, device) if undo else contextlib.nullcontext(), Peak(device) as memory:
        for _ in range(2):
            began = time.perf_counter()
            _update(model, optimizer, batch)
            seconds = time.perf_counter() - began
    return Trial(seconds, memory.peak, memory.before)


def _update(model: nn.Module, optimizer: Optimizer, batch: PackedBatch) -> None:
    made = model(batch)
    loss = made.audio / max(1, batch.audio_count) + TEXT_WEIGHT * made.text / max(1, batch.text_count)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    if batch.mel.device.type == "cuda":
        torch.cuda.synchronize(batch.mel.device)


@contextlib.contextmanager
def untouched(model: nn.Module, optimizer: Optimizer, device: torch.device) -> Iterator[None]:
    """Put weights, optimiser and random numbers back afterwards, also after an error; the copies lie in RAM."""
    weights = {name: weight.detach().to("cpu", copy=True) for name, weight in _changing(model)}
    training, settings = model.training, optimizer.state_dict()
    settings["state"] = {number: _in_ram(state) for number, state in settings["state"].items()}
    try:
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            yield
    finally:
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            for name, weight in _changing(model):
                weight.copy_(weights[name])
        optimizer.state.clear()  # of moments that were not there before
        optimizer.load_state_dict(settings)
        model.train(training)


def _in_ram(state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.to("cpu", copy=True) if isinstance(value, torch.Tensor) else copy.deepcopy(value)
        for name, value in state.items()
    }


def _changing(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield what an update may change: weights that are trained, and buffers."""
    yield from ((name, weight) for name, weight in model.named_parameters() if weight.requires_grad)
    yield from model.named_buffers()


class Peak:
    """Watches how much memory is in use, while it is entered.

    Args:
        device: Whose memory.

    Attributes:
        before: Bytes at the start.
        peak: Most bytes since.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.before = self.peak = 0
        self._done = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            torch.cuda.reset_peak_memory_stats(self.device)
            self.before = torch.cuda.memory_allocated(self.device)
            return self
        process = psutil.Process()
        self.before = self.peak = process.memory_info().rss
        self._thread = threading.Thread(target=self._watch, args=[process], name="peak-memory", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.device.type == "cuda":
            self.peak = torch.cuda.max_memory_allocated(self.device)
        self._done.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, process: Any) -> None:  # noqa: ANN401 - psutil's process
        while not self._done.wait(SAMPLE_SECONDS):
            self.peak = max(self.peak, process.memory_info().rss)
