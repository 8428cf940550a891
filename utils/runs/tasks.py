"""Work in a thread of its own, that tells how far it is and can be broken off between two codes of the model.

The page listens instead of working itself, so it answers at once whatever the work does at that moment.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")

BEAT = 0.25  # seconds between two signs of life
_here = threading.local()


class Stopped(Exception):  # noqa: N818  # somebody wanted it: no error
    """The work was broken off by a person."""


class Work(Generic[T]):
    """One piece of work.

    Args:
        task: Does it, and yields what is worth telling; it runs in a thread of its own.
    """

    def __init__(self, task: Callable[[], Iterator[T]]) -> None:
        self._task = task
        self._news: SimpleQueue[T] = SimpleQueue()
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="inference", daemon=True)
        self.begun = time.monotonic()

    @property
    def seconds(self) -> float:
        """Return for how long it has been going on."""
        return time.monotonic() - self.begun

    @property
    def stopped(self) -> bool:
        """Tell whether somebody broke it off."""
        return self._stop.is_set()

    def break_off(self) -> None:
        """End it before its next code; what it told until then stays."""
        self._stop.set()

    def news(self) -> Iterator[T | None]:
        """Start it and give what it tells, and None as a sign of life; its error comes out here.

        Whoever stops listening breaks it off.
        """
        if not self.stopped:
            self._thread.start()
        try:
            while not self.stopped and self._thread.is_alive():
                yield self._next()
            while not self._news.empty():
                yield self._news.get()
        finally:
            over = not self._thread.is_alive()
            self._stop.set()
        if over and self._error is not None:
            raise self._error

    def wait(self, seconds: float) -> bool:
        """Wait until its thread has ended, if it ever began; tell whether it has."""
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _next(self) -> T | None:
        try:
            return self._news.get(timeout=BEAT)
        except Empty:
            return None

    def _run(self) -> None:
        _here.stop = self._stop
        try:
            for item in self._task():
                self._news.put(item)
                ensure_going()
        except Stopped:
            return
        except BaseException as error:  # noqa: BLE001  # it is raised again where somebody listens
            self._error = error
        finally:
            _here.stop = None


def ensure_going() -> None:
    """End the work of this thread here if somebody wants it; other threads are not concerned."""
    stop: threading.Event | None = getattr(_here, "stop", None)
    if stop is not None and stop.is_set():
        raise Stopped


class Turns:
    """Lets works use the model one after the other, in the order in which they asked; a plain lock starves some."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()

    @contextmanager
    def mine(self) -> Iterator[None]:
        """Wait for a turn, unless the work is broken off meanwhile, and pass it on at the end."""
        me = object()
        with self._changed:
            self._waiting.append(me)
        try:
            with self._changed:
                while self._waiting[0] is not me:
                    ensure_going()
                    self._changed.wait(BEAT)
            yield
        finally:
            with self._changed:
                self._waiting.remove(me)
                self._changed.notify_all()
