"""One mouth for many callers: texts wait in a short queue and are spoken one after the other, in a thread."""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from utils.config import SpeechConfig
from utils.media.audio import Samples
from utils.server.errors import RefusedError
from utils.server.formats import encoded
from utils.speech.joining import silence

USUAL_SECONDS = 2.0  # of one text, as long as none was spoken
WEIGHT = 0.2  # of the newest text in the running mean
LOADING_SECONDS = 5
LET_GO_SECONDS = 5.0  # the piece of sound that is being made at the end is waited for this long

T = TypeVar("T")


class GoneError(Exception):
    """Nobody waits for the speech any more."""


class Sentence(Protocol):
    """One sentence that was spoken, as far as the server looks at it."""

    @property
    def samples(self) -> Samples:
        """Return its sound at 24 000 Hz."""

    @property
    def pause(self) -> float:
        """Return the seconds of silence after it."""

    @property
    def flags(self) -> tuple[str, ...]:
        """Return what is doubtful about it."""


class Speaks(Protocol):
    """What the server needs of a model."""

    def voices(self) -> Sequence[str]:
        """Return the names of the voices that the model brings."""

    def stream(self, text: str, config: SpeechConfig) -> Iterator[Samples]:
        """Give the sound of a text at 24 000 Hz while it is spoken; closing the iterator frees all it holds."""

    def pieces(self, text: str, config: SpeechConfig) -> Iterator[Sentence]:
        """Give each sentence once it is spoken and judged; closing the iterator ends the work."""


@dataclass(eq=False)
class Order:
    """A text to be spoken, and its sound on the way to whoever asked for it.

    Attributes:
        text: What to say.
        config: How.
        form: Name of the format.
        whole: Speak all of it before anything is given, doubtful sentences more than once.
        until: When to give up, by the monotonic clock.
        loop: Where the bytes are waited for.
        doubtful: Sentences that the guards found something wrong with.
    """

    text: str
    config: SpeechConfig
    form: str
    whole: bool
    until: float
    loop: asyncio.AbstractEventLoop
    doubtful: int = 0
    dropped: threading.Event = field(default_factory=threading.Event)
    ready: asyncio.Queue[bytes | Exception] = field(default_factory=asyncio.Queue)

    async def next(self) -> bytes:
        """Wait for the next bytes; none are left when they are empty."""
        given = await self.ready.get()
        if isinstance(given, Exception):
            raise given
        return given

    def give(self, item: bytes | Exception) -> None:
        """Hand over bytes or what went wrong, from any thread."""
        with contextlib.suppress(RuntimeError):  # the loop has ended, and with it everybody who waited
            self.loop.call_soon_threadsafe(self.ready.put_nowait, item)

    def sound(self, speaks: Speaks) -> Iterator[Samples]:
        """Speak the text, as long as somebody waits for it."""
        self.go_on()
        with ending(self._sentences(speaks) if self.whole else speaks.stream(self.text, self.config)) as parts:
            for samples in parts:
                self.go_on()
                yield samples

    def go_on(self) -> None:
        """Give up when the time is over, or nobody waits any more."""
        if self.dropped.is_set():
            raise GoneError
        if time.monotonic() > self.until:
            raise TimeoutError

    def _sentences(self, speaks: Speaks) -> Iterator[Samples]:
        with ending(speaks.pieces(self.text, self.config)) as sentences:
            for sentence in sentences:
                self.doubtful += bool(sentence.flags)
                yield sentence.samples
                yield silence(sentence.pause)


@contextlib.contextmanager
def ending(pieces: Iterator[T]) -> Iterator[Iterator[T]]:
    """Close an iterator in the end, where it is one that can be closed."""
    try:
        yield pieces
    finally:
        if isinstance(pieces, Generator):
            pieces.close()


class Desk:
    """Takes orders and has them spoken.

    Args:
        waiting: How many may wait.
        clients: How many may be open, those included whose sound is made and not yet fetched.
    """

    def __init__(self, waiting: int, clients: int) -> None:
        self.waiting = waiting
        self.clients = clients
        self.speaks: Speaks | None = None
        self.fault: Exception | None = None
        self._queue: deque[Order] = deque()
        self._open: set[Order] = set()
        self._changed = threading.Condition()
        self._closed = False
        self._mean = USUAL_SECONDS
        self._thread: threading.Thread | None = None
        self._speaking: Order | None = None

    def start(self, load: Callable[[], Speaks], on_fault: Callable[[], object]) -> None:
        """Load the model in the background, then speak what is ordered; say so when it cannot be loaded."""
        self._thread = threading.Thread(target=self._work, args=(load, on_fault), name="speaking", daemon=True)
        self._thread.start()

    def take(self, order: Order) -> None:
        """Put an order in the queue, or say why not."""
        with self._changed:
            self.require_ready()
            idle = self._speaking is None and not self._queue
            if (len(self._queue) >= self.waiting and not idle) or len(self._open) >= self.clients:
                after = max(1, round(self._mean * (len(self._queue) + 1)))
                message = f"{len(self._open)} requests are being answered already; try again in {after} seconds."
                raise RefusedError(429, "rate_limit_exceeded", message, after=after)
            self._queue.append(order)
            self._open.add(order)
            self._changed.notify()

    def leave(self, order: Order) -> None:
        """Forget an order, whether it is done, waits or is being spoken; its place is free for others."""
        order.dropped.set()
        with self._changed:
            self._open.discard(order)
            if order in self._queue:
                self._queue.remove(order)

    def require_ready(self) -> Speaks:
        """Return the model, or say that it is being loaded."""
        if self._closed:
            raise RefusedError(503, "stopping", "The server is being stopped.")
        if self.speaks is None:
            message = "The model is still being loaded; try again in a few seconds."
            raise RefusedError(503, "loading", message, after=LOADING_SECONDS)
        return self.speaks

    def counts(self) -> dict[str, int]:
        """Return how many texts are spoken, wait, and are open."""
        with self._changed:
            speaking = int(self._speaking is not None)
            return {"speaking": speaking, "waiting": len(self._queue), "open": len(self._open)}

    def close(self) -> None:
        """Break off what is being spoken and refuse the rest."""
        with self._changed:
            self._closed = True
            for order in self._open:
                order.dropped.set()
                order.give(RefusedError(503, "stopping", "The server is being stopped."))
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(LET_GO_SECONDS)

    def _work(self, load: Callable[[], Speaks], on_fault: Callable[[], object]) -> None:
        try:
            self.speaks = load()
        except Exception as error:  # noqa: BLE001  # raised again where the server was started
            self.fault = error
            on_fault()
            return
        while (order := self._next()) is not None:
            began = time.monotonic()
            try:
                self._speak(order, self.speaks)
            except GoneError:
                order.dropped.set()
            except Exception as error:  # noqa: BLE001  # told to whoever asked; the next text is another matter
                order.give(error)
            with self._changed:
                self._speaking = None
                self._mean += WEIGHT * (time.monotonic() - began - self._mean)

    def _next(self) -> Order | None:
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._closed)
            if self._closed:
                return None
            self._speaking = self._queue.popleft()
            return self._speaking

    def _speak(self, order: Order, speaks: Speaks) -> None:
        with ending(order.sound(speaks)) as sound, ending(encoded(sound, order.form, whole=order.whole)) as contents:
            for content in contents:
                if content:
                    order.give(content)
        order.give(b"")
