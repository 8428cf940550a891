"""Metrics of a run: throughput, memory use and remaining time; and trackers such as TensorBoard that receive them."""

import importlib.util
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from utils.config import TrainConfig
from utils.core.facts import Report
from utils.training.facts import GpuMemoryFull, TrackerFailed
from utils.xtts.device import COUNTED, used_bytes

if TYPE_CHECKING:
    from accelerate import Accelerator

    from utils.training.data_loader import Update

GIB = 2**30
WINDOW = 100  # updates that rates and the remaining time are computed from
WARM_UP = 3  # first updates of a session, which also compile, allocate memory and fill caches
SLOWER = 3  # times the usual update of its size, which tells that memory is read from RAM
FULL = 0.02  # share of the GPU memory that is free


class UpdateTiming(NamedTuple):
    """Timing and size of one update."""

    seconds: float
    data_wait: float
    clips: int
    positions: int
    padded: int


class Throughput:
    """Measures the updates of this session; ``total`` counts those of the whole run.

    Each of several processes sees its own share of the positions. The memory is that of ``device``.
    """

    def __init__(
        self,
        total: int,
        *,
        processes: int = 1,
        device: torch.device | str = "cpu",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total = total
        self.processes = processes
        self.clock = clock
        self.device = torch.device(device)
        self.window: deque[UpdateTiming] = deque(maxlen=WINDOW)
        self.updates = 0  # of this session
        self.pauses: dict[str, tuple[float, int]] = {}  # seconds of an interruption, and updates between two of them
        self.earlier_seconds, self._start = 0.0, clock()
        self._last_end = self._start  # of the last update
        self._data_wait = self._paused = self._memory = 0.0
        self._was_full = False

    @property
    def seconds(self) -> float:
        """Seconds trained, over all sessions."""
        return self.earlier_seconds + self.clock() - self._start

    def data_ready(self) -> None:
        """Record that the clips of the next update have been loaded."""
        self._data_wait = max(0.0, self.clock() - self._last_end - self._paused)

    def pause(self, seconds: float, name: str, every: int) -> None:
        """Exclude an evaluation or a save from the throughput; after ``every`` updates, the next will take as long."""
        self._paused += seconds
        self.pauses[name] = seconds, every

    def metrics(self, update: "Update") -> dict[str, float | None]:
        self._record(update)
        total = UpdateTiming(*map(sum, zip(*self.window, strict=True)))
        seconds = total.seconds or 1e-9
        return {
            "samples_per_second": round(total.clips / seconds, 3),
            "tokens_per_second": round(self.processes * total.positions / seconds, 1),
            "padding": round(1 - total.positions / (total.padded or 1), 4),
            "data_share": round(total.data_wait / seconds, 4),
            "memory_gb": round(self._peak_memory(), 3),
            "seconds_left": self._seconds_left(update.number + 1),
        }

    def _record(self, update: "Update") -> None:
        now = self.clock()
        if self.updates == WARM_UP:
            self.window.clear()
        self.updates += 1
        positions = sum(batch.positions for batch in update.batches)
        padded = sum(batch.padded for batch in update.batches)
        seconds = max(0.0, now - self._last_end - self._paused)
        self.window.append(UpdateTiming(seconds, self._data_wait, update.clips, positions, padded))
        self._last_end = now
        self._data_wait = 0.0
        self._paused = 0.0

    def _seconds_left(self, done: int) -> float | None:
        """Estimate the remaining time including evaluations and saves; None during warm-up."""
        left = max(0, self.total - done)
        if self.updates <= WARM_UP:
            return None if left else 0.0
        mean = sum(timing.seconds for timing in self.window) / len(self.window)
        return round(left * mean + sum(seconds * (left // every) for seconds, every in self.pauses.values()), 1)

    def full_memory(self) -> GpuMemoryFull | None:
        """Say once that the memory of the GPU is full, where Windows moves it to RAM instead of failing."""
        if self._was_full or sys.platform != "win32" or self.device.type != "cuda" or len(self.window) <= WARM_UP:
            return None
        *others, newest = [(timing.seconds - timing.data_wait) / max(1, timing.padded) for timing in self.window]
        slower = newest / (median(others) or newest or 1)
        free, total = torch.cuda.mem_get_info(self.device)
        self._was_full = slower > SLOWER and free < FULL * total
        return GpuMemoryFull(round(slower, 1)) if self._was_full else None

    def _peak_memory(self) -> float:
        """Return the peak memory in GiB: of the GPU, or of this process as far as it was sampled."""
        if self.device.type in COUNTED:
            return float(torch.get_device_module(self.device).max_memory_allocated(self.device)) / GIB
        self._memory = max(self._memory, used_bytes(self.device) / GIB)
        return self._memory


def tracker_is_missing(config: TrainConfig) -> bool:
    return config.tracker != "none" and importlib.util.find_spec(config.tracker) is None


class Tracker:
    """Sends metrics to TensorBoard, Weights & Biases or trackio. Its errors are reported once and never end a run."""

    def __init__(self, config: TrainConfig, accelerator: "Accelerator", folder: Path, report: Report) -> None:
        self.accelerator = accelerator
        self.report = report
        self.name = config.tracker
        self.enabled = config.tracker != "none"
        run = folder.name
        project = Path(config.output_path).name
        if tracker_is_missing(config):
            self._disable(f"No module named {config.tracker!r}")
        elif self.enabled:
            names = {"wandb": {"name": run, "id": run, "resume": "allow"}, "trackio": {"name": run}}
            settings = config.model_dump(mode="json")
            self._try(lambda: accelerator.init_trackers(project, config=settings, init_kwargs=names))

    def log(self, metrics: dict[str, Any], step: int) -> None:
        if self.enabled:
            numbers = {name: value for name, value in metrics.items() if isinstance(value, int | float)}
            self._try(lambda: self.accelerator.log(numbers, step=step))

    def close(self) -> None:
        if self.enabled:
            for tracker in self.accelerator.trackers:  # end_training() would leave the process group as well
                self._try(tracker.finish)

    def _try(self, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001  # trackers raise anything, and none of it should end a run
            self._disable(f"{type(error).__name__}: {error}")

    def _disable(self, error: str) -> None:
        self.enabled = False
        self.report(TrackerFailed(self.name, error))
