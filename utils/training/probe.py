"""Probe a device: a few real updates of a random model with the settings of a run, and what they took.

The GPU certificate, the memory test and the search for a batch size are views of it. ``memory_trace`` is the same
update on tensors without data, which needs no device.
"""

import contextlib
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from torch import nn

from utils.config import TrainConfig
from utils.training.data_loader import Update
from utils.training.distribution import Ranks
from utils.training.errors import ClipsDoNotFitError, StateDoesNotFitError
from utils.training.first_batch import FirstBatch
from utils.training.fit import make_step
from utils.training.model_size import ClipSize, ModelSize, clips_per_batch, random_batch
from utils.training.optimizations import optimized_gpt
from utils.training.packing import PackedBatch, SpecialTokens
from utils.training.speedups import gpu
from utils.xtts.device import COUNTED, choose_precision, free_memory, is_out_of_memory, used_bytes

SAMPLE_SECONDS = 0.002  # between two readings of the memory of a process
SHRINK = 0.9  # of the batch that did not fit


class Measured(NamedTuple):
    """What a few updates gave."""

    numbers: tuple[float, ...]  # loss and norm of the gradient of each update
    seconds: float  # of an update
    peak: int  # bytes: allocated by torch on a GPU, else of this process
    parts: dict[str, str]  # what the first update really used
    kernels: tuple[str, ...]  # of attention


class Probe:
    """A training step of a model with random weights, as a run with these settings would build it."""

    def __init__(self, config: TrainConfig, size: ModelSize, device: torch.device) -> None:
        from accelerate import Accelerator
        from accelerate.state import AcceleratorState

        self.config, self.device = config, device
        gpt, self.changes = optimized_gpt(size, config, device)
        for name, weight in gpt.named_parameters():
            if "proj_out" in name:  # coqui starts them at zero, which would hide an error in the encoder's attention
                nn.init.normal_(weight, std=0.05)
        AcceleratorState._reset_state(reset_partial_state=True)  # noqa: SLF001  # the next probe has another precision
        precision = choose_precision(device, wanted=config.enable_mixed_precision).dtype
        ranks = Ranks(Accelerator(cpu=device.type == "cpu", mixed_precision=precision))
        self.step = make_step(gpt, config, ranks, total=1000)
        self.tokens = SpecialTokens.from_model(gpt)
        self.parts: dict[str, str] = {}
        self.kernels: tuple[str, ...] = ()
        FirstBatch(self.step, self._observe)
        self.step.allocate()

    def run(self, batches: Sequence[PackedBatch], updates: int = 2) -> Measured:
        """Train on the same batches so many times; updates that fp16 skips, while its scale is too high, add to them.

        The first one allocates the state of the optimizer, and is not timed.
        """
        results, seconds = [], []
        with peak_memory(self.device) as peak:
            for number in range(2 * updates):
                began = time.perf_counter()
                results.append(self.step.run(self._update(batches, number)))
                torch.get_device_module(self.device).synchronize()
                seconds.append(time.perf_counter() - began)
                if [result.status for result in results].count("applied") == updates:
                    break
        numbers = tuple(number for result in results[-updates:] for number in (result.loss, result.norm))
        return Measured(numbers, min(seconds[1:]), peak[0], self.parts, self.kernels)

    def _observe(self, parts: dict[str, str], kernels: tuple[str, ...]) -> None:
        self.parts, self.kernels = parts, kernels

    def _update(self, batches: Sequence[PackedBatch], number: int) -> Update:
        return Update(
            list(batches),
            sum(batch.text_count for batch in batches),
            sum(batch.audio_count for batch in batches),
            sum(batch.clips for batch in batches),
            self.config.embedding_warmup_steps + number,
        )

    def measure(self, clip: ClipSize, clips: int) -> Measured:
        """Measure an update whose batch has so many of the longest clips, beside the gradients of its other parts."""
        self.step.micro.max_splits = 0
        batch = random_batch(self.tokens, clip, clips)
        is_whole = clips >= clips_per_batch(self.config, clip) * self.config.grad_acumm
        try:
            return self.run([batch] if is_whole else [batch, batch])
        except (RuntimeError, StateDoesNotFitError) as error:
            if isinstance(error, StateDoesNotFitError) or is_out_of_memory(error):
                self.step.discard()
                raise ClipsDoNotFitError(clips) from error
            raise

    def largest_batch(self, clip: ClipSize, maximum: int, available: int) -> int:
        """Return the largest number of clips, up to a maximum, whose update stays within the available bytes."""
        clips = maximum
        while clips:
            with contextlib.suppress(ClipsDoNotFitError):
                if self.measure(clip, clips).peak <= available:
                    return clips
            free_memory()
            clips = int(SHRINK * clips)
        raise ClipsDoNotFitError(1)


@contextmanager
def probe(config: TrainConfig, size: ModelSize, device: torch.device) -> Iterator[Probe]:
    """Open a probe; every one starts from the same weights, and leaves the modes of torch as they were."""
    before, is_deterministic = gpu.tf32_state(), torch.are_deterministic_algorithms_enabled()
    try:
        with torch.random.fork_rng([] if device.type == "cpu" else [device], device_type=device.type):
            torch.manual_seed(0)
            yield Probe(config, size, device)
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = before.values()
        torch.use_deterministic_algorithms(is_deterministic)
        free_memory()


@contextlib.contextmanager
def peak_memory(device: torch.device) -> Iterator[list[int]]:
    """Watch how much memory is in use; afterwards the list holds the maximum in bytes."""
    peak = [0]
    if device.type in COUNTED:
        gpu = torch.get_device_module(device)
        gpu.synchronize()
        gpu.reset_peak_memory_stats(device)
        yield peak
        peak[0] = gpu.max_memory_allocated(device)
        return
    done = threading.Event()
    is_counted_by_the_kernel = device.type == "cpu" and _reset_peak_of_process()

    def watch() -> None:
        is_done = False
        while not is_done:
            peak[0] = max(peak[0], used_bytes(device))
            is_done = done.wait(SAMPLE_SECONDS)

    thread = threading.Thread(target=watch, name="peak-memory", daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()
        if is_counted_by_the_kernel:
            status = Path("/proc/self/status").read_text()
            peak[0] = max(peak[0], 1024 * int(status.split("VmHWM:")[1].split()[0]))


def _reset_peak_of_process() -> bool:
    """Let the kernel count the peak anew. Without it, sampling misses short peaks on a busy machine."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True
