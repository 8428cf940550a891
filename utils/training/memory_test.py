"""Measure the time and the peak memory of a real update with the longest clips and random data."""

import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import psutil
import torch
from accelerate import find_executable_batch_size
from torch import nn

from utils.config import TrainConfig
from utils.training.ema import Ema
from utils.training.memory import NotEnoughMemoryError
from utils.training.model_size import ClipSize, random_batch
from utils.training.packing import LossSums, PackedBatch, PackedGpt, SpecialTokens
from utils.training.speedups.optimizers import make_optimizer

SAMPLE_SECONDS = 0.002
TEXT_WEIGHT = 0.01


@dataclass(frozen=True)
class StepCost:
    """Seconds of one update and the peak bytes in use: allocated by torch on a GPU, else of this process."""

    seconds: float
    peak: int


class MemoryTest:
    """Runs updates on random data as a run with these settings would.

    Args:
        gpt: coqui's GPT with all optimizations applied.
        config: Settings of the run.
        clip: Size of every clip.
        device: Device to compute on.
        dtype: Type of matrix products; float32 disables autocast.
    """

    def __init__(
        self, gpt: nn.Module, config: TrainConfig, clip: ClipSize, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.tokens, self.clip, self.device, self.dtype = SpecialTokens.from_model(gpt), clip, device, dtype
        self.model = PackedGpt(gpt.to(device), config.label_smoothing).train()
        self.optimizer, _ = make_optimizer(self.model, config, device)
        self.ema = Ema(gpt, config.ema_decay, config.ema_device) if config.enable_ema else None

    def measure(self, clips: int) -> StepCost:
        """Run two updates, because the first one allocates the optimizer's state, and return the cost of the second."""
        batch = random_batch(self.tokens, self.clip, clips).to(self.device)
        seconds = 0.0
        with PeakMemory(self.device) as memory:
            for _ in range(2):
                start = time.perf_counter()
                self._update(batch)
                seconds = time.perf_counter() - start
        return StepCost(seconds, memory.peak)

    def largest_batch(self, maximum: int, available: int) -> int:
        """Return the largest number of clips, up to a maximum, whose update stays within the available bytes."""

        def attempt(clips: int) -> int:
            if self.measure(clips).peak > available:
                raise torch.OutOfMemoryError("CUDA out of memory.")  # accelerate recognizes the message
            return clips

        search = find_executable_batch_size(attempt, starting_batch_size=maximum)  # a tenth less after each failure
        try:
            return int(search())
        except RuntimeError as error:
            raise NotEnoughMemoryError(
                "Not even one clip fits into memory.", hint="See what would help: python -m utils memory-plan."
            ) from error

    def _update(self, batch: PackedBatch) -> None:
        with torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32):
            sums: LossSums = self.model(batch)
        loss = sums.audio / max(1, batch.audio_count) + TEXT_WEIGHT * sums.text / max(1, batch.text_count)
        torch.autograd.backward(loss)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


class PeakMemory:
    """Context manager that watches how much memory is in use; ``peak`` is the maximum in bytes."""

    def __init__(self, device: torch.device) -> None:
        self.device, self.peak = device, 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak-memory", daemon=True)

    def __enter__(self) -> Self:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
            torch.cuda.reset_peak_memory_stats(self.device)
        else:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self.device.type == "cuda":
            self.peak = torch.cuda.max_memory_allocated(self.device)
            return
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        process = psutil.Process()
        while True:
            self.peak = max(self.peak, process.memory_info().rss)
            if self._done.wait(SAMPLE_SECONDS):
                return
