"""One model in memory and one queue of requests for it, shared by every visitor of the page and every HTTP client.

A request is a task: a generator that gets the loaded model and yields events. A few requests run at once, each in a
thread, and the sentences of all of them are generated together (``batching``); the others wait.
"""

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

import psutil

from utils.config import SpeechConfig
from utils.core.errors import RunBusyError, explain
from utils.core.facts import log_fact
from utils.speech.facts import (
    ModelInUseError,
    ModelLoadingError,
    QueueFullError,
    SessionClosedError,
    SpeechHindered,
    SpeechInterruptedError,
)

if TYPE_CHECKING:
    from utils.speech.synthesizer import Synthesizer

logger = logging.getLogger(__name__)
T = TypeVar("T")
Task = Callable[["Synthesizer"], Iterator[T]]
Check = Callable[[], None]  # raises RequestCancelledError when the current request was cancelled

MAX_ACTIVE = 8
HEARTBEAT_SECONDS = 0.25
CLOSE_SECONDS = 1.0
FIRST_ESTIMATE = 2.0  # seconds per request, before any was measured
NEWEST_WEIGHT = 0.2  # of the newest request in the running mean
TRIM_SECONDS = 10.0  # between two releases of free memory


class RequestCancelledError(Exception):
    """The current request was cancelled."""


@dataclass(eq=False)
class SpeechRequest(Generic[T]):
    """A task in the queue of a session."""

    session: "SpeechSession"
    task: Task[T]  # the generator function to run with the model
    config: SpeechConfig  # names the model, its device and its precision
    owner: str  # who may have only one request at a time; empty for any number
    # Gets what ``deliver`` gets, instead of ``events``.
    receiver: Callable[[T | Exception | None], object] | None
    uses_model: bool = False
    cancelled: bool = False
    _submitted: float = field(default_factory=time.monotonic)
    _events: "SimpleQueue[T | Exception | None]" = field(default_factory=SimpleQueue)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._submitted

    def deliver(self, item: T | Exception | None) -> None:
        """Deliver an event, or an error or None as the end."""
        (self.receiver or self._events.put)(item)

    def cancel(self) -> None:
        """Leave the queue at once; a running task stops before the next code of the model."""
        self.session.remove(self)
        self._events.put(None)

    def events(self) -> Generator[T | None, None, None]:
        """Yield each event, and None four times a second while there is none; raise the error of the task.

        Whoever stops iterating cancels the request.
        """
        try:
            while True:
                try:
                    item = self._events.get(timeout=HEARTBEAT_SECONDS)
                except Empty:
                    yield None
                    continue
                if isinstance(item, Exception):
                    raise item
                if item is None:
                    return
                yield item
        finally:
            self.cancel()


_current: ContextVar[SpeechRequest[object]] = ContextVar("request")


def check_cancelled() -> None:
    """Raise ``RequestCancelledError`` when the request that this is done for was cancelled."""
    if _current.get().cancelled:
        raise RequestCancelledError


@dataclass(frozen=True)
class ActiveModel:
    """The model in memory."""

    synthesizer: "Synthesizer"
    choice: tuple[str, str, str]  # the path, device and precision that were requested
    seconds: float  # how long loading took
    gib: float  # how much the memory of this process grew

    @cached_property
    def gpu_gib(self) -> float:
        """Return the GPU memory in use when this is first read."""
        from utils.xtts.device import gpu_memory_gib

        return gpu_memory_gib()


class SpeechSession:
    """Loads one model at a time and runs requests with it in the order of their arrival.

    ``load`` gets a check to call at each code of the model. The public methods may be called from any thread.
    """

    def __init__(
        self, load: Callable[[SpeechConfig, Check], "Synthesizer"], max_active: int = MAX_ACTIVE, max_waiting: int = 16
    ) -> None:
        self.max_active = max_active
        self.max_waiting = max_waiting
        self.loaded: ActiveModel | None = None
        self.loading = ""  # the path of the model that is being loaded
        self._load = load
        self._changed = threading.Condition()
        self._load_lock = threading.Lock()
        self._queue: list[SpeechRequest[object]] = []  # waiting and running ones that were not cancelled
        self._running: list[SpeechRequest[object]] = []
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._mean_seconds = FIRST_ESTIMATE
        self._trimmed = time.monotonic()

    def submit(
        self,
        task: Task[T],
        config: SpeechConfig,
        *,
        owner: str = "",
        deliver: Callable[[T | Exception | None], object] | None = None,
    ) -> SpeechRequest[T]:
        """Queue a task; a second request of the same owner cancels the first.

        Raises:
            QueueFullError: Too many requests are waiting.
        """
        self.cancel(owner)
        request = SpeechRequest(self, task, config, owner, deliver)
        with self._changed:
            if self._closed:
                raise SessionClosedError
            if len(self._queue) >= self.max_active + self.max_waiting:
                seconds = self._mean_seconds * len(self._queue) / self.max_active
                raise QueueFullError(len(self._queue), max(1, round(seconds)))
            if len(self._threads) < min(self.max_active, len(self._running) + len(self._waiting()) + 1):
                thread = threading.Thread(target=self._work, name="speech", daemon=True)
                thread.start()  # before anything is noted: the system may refuse another thread
                self._threads.append(thread)
            self._queue.append(request)  # type: ignore[arg-type]  # the session only passes events on
            self._changed.notify_all()
        return request

    def cancel(self, owner: str) -> bool:
        """Cancel the request of an owner and return whether there was one."""
        with self._changed:
            requests = [request for request in self._queue if owner and request.owner == owner]
        for request in requests:
            request.cancel()
        return bool(requests)

    def remove(self, request: SpeechRequest[T]) -> None:
        """Remove a request from the queue, whether it waits, runs or has ended."""
        with self._changed:
            request.cancelled = True
            self._queue = [other for other in self._queue if other is not request]
            self._changed.notify_all()

    def counts(self) -> dict[str, int]:
        with self._changed:
            return {"speaking": len(self._running), "waiting": len(self._waiting())}

    @property
    def users(self) -> int:
        return len(self._queue)

    def unload(self) -> None:
        """Remove the model from memory.

        Raises:
            RunBusyError: The model is loading or in use.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._queue or not self._running)  # a cancelled one stops at its next code
            self._drop_model(self._queue)

    def make_room(self) -> None:
        """Unload the model for work that needs the memory; one that is in use stays."""
        if self.loaded is not None:
            try:
                self.unload()
            except RunBusyError as error:
                log_fact(SpeechHindered("stays_loaded", str(error)))

    def close(self) -> None:
        with self._changed:
            if self._closed:
                return
            self._closed = True
            requests = list(self._queue)
            self._changed.notify_all()
        for request in requests:
            request.deliver(SessionClosedError())
            request.cancel()
        deadline = time.monotonic() + CLOSE_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _waiting(self) -> list[SpeechRequest[object]]:
        return [request for request in self._queue if request not in self._running]

    def _work(self) -> None:
        """Run requests until the session is closed. Nothing else ends a worker: the next request needs it."""
        while not self._closed:
            try:
                self._serve_next()
                if not self._closed:
                    self._trim()
            except BaseException as error:
                said = explain(error)
                logger.exception("%s", said)

    def _serve_next(self) -> None:
        """Wait for a request, run it, and deliver its events and its end, whatever ends it."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._waiting())
            if self._closed:
                return
            request = self._waiting()[0]
            self._running.append(request)
        started = time.monotonic()
        _current.set(request)
        try:
            self._run(request)
            request.deliver(None)
        except RequestCancelledError:
            request.deliver(None)
        except Exception as error:  # noqa: BLE001  # the caller gets it; the next request is another matter
            request.deliver(None if self._closed else error)  # threads of the GPU take no more work while Python ends
        except BaseException as error:  # such as SystemExit, which would end the thread
            request.deliver(SpeechInterruptedError(type(error).__name__))
            raise
        finally:
            self._finish(request, time.monotonic() - started)
            self.remove(request)

    def _run(self, request: SpeechRequest[object]) -> None:
        events = request.task(self._model_for(request))
        try:
            for event in events:
                check_cancelled()
                request.deliver(event)
        finally:
            if isinstance(events, Generator):
                events.close()  # an error while closing reaches the caller too

    def _finish(self, request: SpeechRequest[object], seconds: float) -> None:
        with self._changed:
            self._running.remove(request)
            self._mean_seconds += NEWEST_WEIGHT * (seconds - self._mean_seconds)

    def _trim(self) -> None:
        """Return free memory to the system now and then: sentences of many lengths leave holes in the heap."""
        if time.monotonic() - self._trimmed > TRIM_SECONDS:
            from utils.xtts.device import trim_memory

            self._trimmed = time.monotonic()
            trim_memory()

    def _model_for(self, request: SpeechRequest[object]) -> "Synthesizer":
        """Return the model that a request names, loading it in place of another one if needed."""
        config = request.config
        choice = (config.model, config.device, config.precision)
        with self._load_lock:
            with self._changed:
                if self.loaded is not None and self.loaded.choice == choice:
                    request.uses_model = True
                    return self.loaded.synthesizer
                self._changed.wait_for(lambda: all(other in self._queue for other in self._users()))
                self._drop_model(self._users())
                self.loading = config.model or "latest"
            started = time.monotonic()
            memory = psutil.Process().memory_info
            before = memory().rss
            try:
                synthesizer = self._load(config, check_cancelled)
            finally:
                self.loading = ""
            grown = max(0, memory().rss - before) / 2**30
            self.loaded = ActiveModel(synthesizer, choice, time.monotonic() - started, grown)
            request.uses_model = True
            return synthesizer

    def _users(self) -> list[SpeechRequest[object]]:
        return [request for request in self._running if request.uses_model]

    def _drop_model(self, users: Sequence[SpeechRequest[object]]) -> None:
        if self.loading:
            raise ModelLoadingError
        if users:
            raise ModelInUseError(len(users))
        loaded = self.loaded
        self.loaded = None
        if loaded is not None:
            from utils.xtts.device import free_memory, on_gpu_thread

            on_gpu_thread(loaded.synthesizer.__dict__.clear)  # a traceback may still refer to it and hold gigabytes
            free_memory()
