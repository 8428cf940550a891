"""Tells a person how far a long command is."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

PROGRESS_SECONDS = 10.0  # between two progress lines

T = TypeVar("T")


@dataclass
class Progress:
    """Reports the progress of a command.

    Attributes:
        name: Its name.
        tell: Called with each line.
    """

    name: str
    tell: Callable[[str], None]
    _last: float = field(default_factory=time.monotonic)

    def say(self, sentence: str) -> None:
        """Report a message."""
        self.tell(f"{self.name}: {sentence}")

    def at(self, done: int, total: int, seconds_left: float, more: str = "") -> None:
        """Report progress, at most every ten seconds."""
        if time.monotonic() - self._last >= PROGRESS_SECONDS or done == total:
            self._last = time.monotonic()
            self.say(f"{done:,} of {total:,}, {format_duration(seconds_left)} left{', ' if more else ''}{more}")

    def over(self, items: Iterable[T], total: int) -> Iterator[T]:
        """Yield the items and report how many are done."""
        began = time.monotonic()
        for done, item in enumerate(items, 1):
            yield item
            self.at(done, total, (time.monotonic() - began) * (total - done) / done)


def format_duration(seconds: float) -> str:
    """Format a duration."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
