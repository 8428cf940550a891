"""How fast a run is, what it takes, and how long it still lasts; right after a resume too."""

import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import psutil
import torch

if TYPE_CHECKING:
    from utils.training.data_loader import Update

GIB = 2**30
WINDOW = 100  # updates that rates and the time that is left are taken from
WARM_UP = 3  # first updates of a session, which also compile, reserve memory and fill caches


class Taken(NamedTuple):
    """What one update came to."""

    seconds: float
    waited: float
    clips: int
    positions: int
    padded: int


class Pause(NamedTuple):
    """Something that interrupts the updates again and again."""

    seconds: float
    every: int


class Throughput:
    """Measures the updates of this session.

    Args:
        total: Updates of the whole run.
        processes: How many train together; this one sees its own part of the positions.
        device: Where the model is; its memory is what is told.
        clock: Tells the time in seconds.
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
        self.window: deque[Taken] = deque(maxlen=WINDOW)
        self.updates = 0  # of this session
        self.pauses: dict[str, Pause] = {}
        self._before, self._began = 0.0, clock()
        self._ended = self._began  # of the last update
        self._waited = self._left_out = 0.0
        self._memory = 0.0

    @property
    def seconds(self) -> float:
        """Return the seconds trained, all sessions together."""
        return self._before + self.clock() - self._began

    def add_earlier(self, seconds: float) -> None:
        """Count what earlier sessions took, once it is known."""
        self._before += seconds

    def loaded(self) -> None:
        """Note that the clips of the next update are here: until now it waited for them."""
        self._waited = max(0.0, self.clock() - self._ended - self._left_out)

    def leave_out(self, seconds: float, what: str = "", every: int = 0) -> None:
        """Leave an evaluation or a save out of the rates.

        Args:
            seconds: How long it took.
            what: Its name; the last one of each name says how long the coming ones will take.
            every: Updates between two of them, so that the time that is left counts them in; 0: not counted.
        """
        self._left_out += seconds
        if every:
            self.pauses[what] = Pause(seconds, every)

    def fields(self, update: "Update") -> dict[str, float | None]:
        """Take an update that is done, and return what the event of it tells."""
        self._take(update)
        seconds = sum(taken.seconds for taken in self.window) or 1e-9
        padded = sum(taken.padded for taken in self.window) or 1
        positions = sum(taken.positions for taken in self.window)
        return {
            "samples_per_second": round(sum(taken.clips for taken in self.window) / seconds, 3),
            "tokens_per_second": round(self.processes * positions / seconds, 1),
            "padding": round(1 - positions / padded, 4),
            "data_share": round(sum(taken.waited for taken in self.window) / seconds, 4),
            "memory_gb": round(self.memory(), 3),
            "seconds_left": self.seconds_left(update.number + 1),
        }

    def seconds_left(self, done: int) -> float | None:
        """Guess how long the rest takes, evaluations and saves included; None while it is warming up."""
        left = max(0, self.total - done)
        if self.updates <= WARM_UP:
            return None if left else 0.0
        mean = sum(taken.seconds for taken in self.window) / len(self.window)
        pauses = sum(pause.seconds * (left // pause.every) for pause in self.pauses.values())
        return round(left * mean + pauses, 1)

    def memory(self) -> float:
        """Return the most memory that was in use, in GiB: of the GPU, else of this process as far as it was asked."""
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device) / GIB
        self._memory = max(self._memory, psutil.Process().memory_info().rss / GIB)
        return self._memory

    def _take(self, update: "Update") -> None:
        now = self.clock()
        if self.updates == WARM_UP:
            self.window.clear()
        self.updates += 1
        positions = sum(batch.positions for batch in update.batches)
        padded = sum(batch.padded for batch in update.batches)
        seconds = max(0.0, now - self._ended - self._left_out)
        self.window.append(Taken(seconds, self._waited, update.clips, positions, padded))
        self._ended, self._waited, self._left_out = now, 0.0, 0.0
