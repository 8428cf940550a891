"""Lines that say how far a stage is and how long it will take, not more often than a person reads them."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
SECONDS = 10.0  # between two lines


@dataclass
class Progress:
    """Tells how far one stage is.

    Attributes:
        stage: Its name.
        tell: Hears the lines.
    """

    stage: str
    tell: Callable[[str], None]
    _last: float = field(default_factory=time.monotonic)

    def say(self, sentence: str) -> None:
        """Say something that is worth a line of its own."""
        self.tell(f"{self.stage}: {sentence}")

    def at(self, done: int, total: int, seconds_left: float, more: str = "") -> None:
        """Say how far it is, unless that was said a moment ago."""
        if time.monotonic() - self._last >= SECONDS or done == total:
            self._last = time.monotonic()
            self.say(f"{done:,} of {total:,}, {spelled(seconds_left)} left{', ' if more else ''}{more}")

    def over(self, items: Iterable[T], total: int) -> Iterator[T]:
        """Pass on items and say how many went by."""
        began = time.monotonic()
        for done, item in enumerate(items, 1):
            yield item
            self.at(done, total, (time.monotonic() - began) * (total - done) / done)


def spelled(seconds: float) -> str:
    """Write a time for people."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min" if hours else f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
