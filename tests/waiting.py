"""Waits for what other processes and threads do."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_for(find: Callable[[], T | None], seconds: float = 20, seen: Callable[[], object] = str) -> T:
    """Wait until something is found, or a condition holds, and return it; what was seen instead explains a failure."""
    deadline = time.monotonic() + seconds
    while not (found := find()):
        assert time.monotonic() < deadline, f"waited in vain: {seen()}"
        time.sleep(0.02)
    return found
