"""Throughput, memory use and remaining time of a run."""

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import psutil
import torch

if TYPE_CHECKING:
    from utils.training.data_loader import Update

GIB = 2**30
WINDOW = 100  # updates that rates and the remaining time are computed from
WARM_UP = 3  # first updates of a session, which also compile, allocate memory and fill caches


class UpdateTiming(NamedTuple):
    """Timing and size of one update."""

    seconds: float
    data_wait: float
    clips: int
    positions: int
    padded: int


class Pause(NamedTuple):
    """A recurring interruption of the updates, such as an evaluation."""

    seconds: float
    every: int


class Throughput:
    """Measures the updates of this session.

    Args:
        total: Updates of the whole run.
        processes: Number of processes; this one sees its own share of the positions.
        device: Device of the model, whose memory is reported.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        total: int,
        *,
        processes: int = 1,
        device: torch.device | str = "cpu",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total, self.processes, self.clock = total, processes, clock
        self.device = torch.device(device)
        self.window: deque[UpdateTiming] = deque(maxlen=WINDOW)
        self.updates = 0  # of this session
        self.pauses: dict[str, Pause] = {}
        self._earlier, self._start = 0.0, clock()
        self._last_end = self._start  # of the last update
        self._data_wait = self._paused = 0.0
        self._memory = 0.0

    @property
    def seconds(self) -> float:
        """Return the seconds trained, over all sessions."""
        return self._earlier + self.clock() - self._start

    def add_earlier(self, seconds: float) -> None:
        """Add the time of earlier sessions."""
        self._earlier += seconds

    def data_ready(self) -> None:
        """Record that the clips of the next update have been loaded."""
        self._data_wait = max(0.0, self.clock() - self._last_end - self._paused)

    def pause(self, seconds: float, name: str = "", every: int = 0) -> None:
        """Exclude an evaluation or a save from the throughput.

        Args:
            seconds: How long it took.
            name: Its name; later ones of the same name are expected to take as long.
            every: Updates between two of them, for the remaining time; 0 if it does not recur.
        """
        self._paused += seconds
        if every:
            self.pauses[name] = Pause(seconds, every)

    def metrics(self, update: "Update") -> dict[str, float | None]:
        """Record a finished update and return its metrics."""
        self._record(update)
        seconds = sum(timing.seconds for timing in self.window) or 1e-9
        padded = sum(timing.padded for timing in self.window) or 1
        positions = sum(timing.positions for timing in self.window)
        return {
            "samples_per_second": round(sum(timing.clips for timing in self.window) / seconds, 3),
            "tokens_per_second": round(self.processes * positions / seconds, 1),
            "padding": round(1 - positions / padded, 4),
            "data_share": round(sum(timing.data_wait for timing in self.window) / seconds, 4),
            "memory_gb": round(self.memory(), 3),
            "seconds_left": self.seconds_left(update.number + 1),
        }

    def seconds_left(self, done: int) -> float | None:
        """Estimate the remaining time including evaluations and saves; None during warm-up."""
        left = max(0, self.total - done)
        if self.updates <= WARM_UP:
            return None if left else 0.0
        mean = sum(timing.seconds for timing in self.window) / len(self.window)
        pauses = sum(pause.seconds * (left // pause.every) for pause in self.pauses.values())
        return round(left * mean + pauses, 1)

    def memory(self) -> float:
        """Return the peak memory in GiB: of the GPU, or of this process as far as it was sampled."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device) / GIB
        self._memory = max(self._memory, psutil.Process().memory_info().rss / GIB)
        return self._memory

    def _record(self, update: "Update") -> None:
        now = self.clock()
        if self.updates == WARM_UP:
            self.window.clear()
        self.updates += 1
        positions = sum(batch.positions for batch in update.batches)
        padded = sum(batch.padded for batch in update.batches)
        seconds = max(0.0, now - self._last_end - self._paused)
        self.window.append(UpdateTiming(seconds, self._data_wait, update.clips, positions, padded))
        self._last_end, self._data_wait, self._paused = now, 0.0, 0.0
