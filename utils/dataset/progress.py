"""How far a build is and how long it will take, weighed by the size of the files."""

import time
from collections.abc import Mapping
from typing import Protocol

EVENT_SECONDS = 0.5


class Emit(Protocol):
    """Hears what happens, as ``EventLog.emit`` does."""

    def __call__(self, kind: str, **fields: object) -> None:
        """Take one event."""


class Progress:
    """Adds up what is done of each file and says so, twice a second at most.

    Args:
        emit: Hears of it.
    """

    def __init__(self, emit: Emit) -> None:
        self.emit = emit
        self.sizes: Mapping[str, int] = {}
        self.shares: dict[str, float] = {}
        self.began = self.told = 0.0

    def begin(self, sizes: Mapping[str, int]) -> None:
        """Start the clock."""
        self.sizes = sizes
        self.began = time.monotonic()

    def reached(self, name: str, share: float) -> None:
        """Take how far a file is; the last word is always passed on."""
        self.shares[name] = share
        finished = sum(done >= 1 for done in self.shares.values())
        now = time.monotonic()
        if now - self.told < EVENT_SECONDS and finished < len(self.sizes):
            return
        self.told = now
        total = sum(self.sizes.values()) or 1
        done = sum(self.sizes[name] * min(1.0, share) for name, share in self.shares.items()) / total
        left = (now - self.began) * (1 - done) / done if done else None
        self.emit(
            "progress",
            step=finished,
            total=len(self.sizes),
            percent=round(100 * done, 1),
            seconds_left=left and round(left),
        )
