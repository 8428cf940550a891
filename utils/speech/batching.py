"""Continuous batching: the sentences of all requests are generated together; they join and leave at every step.

The batch has no thread of its own. One of the threads waiting for codes runs the steps for all of them, and hands over
to another when it has what it waited for. On a processor, a single caller therefore computes everything in its own
thread; the work on a GPU is done by the thread that owns it (``Lane``).
"""

import contextlib
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from utils.config import SpeechConfig
from utils.core.facts import ShouldStop, raise_if_stopped
from utils.speech.network import DecoderNetwork
from utils.speech.steps import DecodingStep, StepResult
from utils.speech.types import Generation, Sentence

MAX_ROWS = 16  # sentences at a time, of all requests; any request may always have one


@dataclass(eq=False)
class BatchRow:
    """A sentence that is generated, or waits for that."""

    request: "DecodingRequest"
    sentence: Sentence
    limit: int  # maximum number of codes
    generation: Generation = field(default_factory=Generation)

    @property
    def is_running(self) -> bool:
        return not (self.generation.finished or self.request.closed or self.request.error)

    def add(self, code: int, latent: Tensor, logprob: float, *, stop: int) -> None:
        generation = self.generation
        generation.codes.append(code)
        generation.latents.append(latent)
        generation.logprobs.append(logprob)
        generation.ended = code == stop
        generation.finished = generation.ended or len(generation.codes) == self.limit
        if generation.finished:
            self.request.finished.append(generation)


class DecodingRequest:
    """The sentences of one caller, in one voice; closing it frees their rows within a step."""

    def __init__(self, batch: "Batch", prompt: Tensor, config: SpeechConfig, should_stop: ShouldStop) -> None:
        self.batch = batch
        self.prompt = prompt
        self.config = config
        self.should_stop = should_stop
        self.waiting: deque[BatchRow] = deque()
        self.finished: deque[Generation] = deque()
        self.error: Exception | None = None
        self.closed = False
        self.context = copy_context()  # of the caller, who may be cancelled
        self.is_due: Callable[[], bool] = bool  # whether the caller has to be woken; at first not
        self.wake = threading.Condition(batch.lock)
        with batch.lock:
            batch.requests.append(self)

    def add(self, sentence: Sentence, attempt: int = 1) -> Generation:
        """Add a sentence, and return what will grow while this or another request waits; further attempts go first."""
        self.batch.decoder.check(sentence)
        row = BatchRow(self, sentence, self.batch.decoder.limit(sentence))
        (self.waiting.append if attempt == 1 else self.waiting.appendleft)(row)
        return row.generation

    def wait(self, is_due: Callable[[], bool]) -> None:
        """Return when something is true of the generations; raise what has gone wrong with this request."""
        self.is_due = lambda: self.error is not None or is_due()
        self.batch.work_for(self)
        if self.error is not None:
            raise self.error

    def next_finished(self) -> Generation:
        """Wait for the next generation that is complete."""
        self.wait(lambda: bool(self.finished))
        return self.finished.popleft()

    def close(self) -> None:
        self.closed, self.is_due = True, bool  # also ends a reference to itself
        self.batch.remove(self)


class Batch:
    """The rows of all requests.

    With CUDA graphs, the codes of a step are read when the next one has been started, so that the GPU does not wait for
    the host. A row that has ended is therefore noticed one step late, and its extra code is dropped.
    """

    def __init__(self, decoder: DecoderNetwork) -> None:
        self.decoder = decoder
        self.lock = threading.RLock()  # collecting garbage may close a request anywhere, also in a thread that has it
        self.requests: list[DecodingRequest] = []  # the open ones
        self.rows: list[BatchRow] = []  # in the order of the cache
        self._is_stepping = False
        self._unread: deque[tuple[list[BatchRow], StepResult]] = deque()  # of steps that have been started
        self._step = decoder.lane.run(lambda: DecodingStep(decoder))

    def warm_up(self) -> None:
        """Prepare a GPU for any number of rows, so that nothing is captured while somebody listens."""
        with contextlib.suppress(torch.OutOfMemoryError):  # of the cache; a capture that fails ends the graphs
            if self.decoder.uses_graphs:
                self.decoder.lane.run(torch.inference_mode()(lambda: self._step.warm_up(MAX_ROWS)))

    def _begin(self) -> None:
        """Begin without rows; their memory is free, except what CUDA graphs use again."""
        self._unread.clear()
        if self.decoder.uses_graphs:
            self._step.select([])
        else:
            self._step = DecodingStep(self.decoder)

    def remove(self, request: DecodingRequest) -> None:
        """Remove a request; a step that is being done frees its rows itself."""
        with self.lock:
            with contextlib.suppress(ValueError):  # it may be closed twice
                self.requests.remove(request)
            if self._is_stepping:
                return
            self._is_stepping = True
        self._end_steps()

    def work_for(self, request: DecodingRequest) -> None:
        """Return once a request is due; until then this thread does the steps, unless another one does."""
        with self.lock:
            request.wake.wait_for(lambda: request.is_due() or not self._is_stepping)
            if request.is_due():
                return
            self._is_stepping = True
        try:
            while not request.is_due():
                self._advance()
        except BaseException as error:  # the rows may be half a step apart
            problem = error if isinstance(error, Exception) else RuntimeError("Decoding was interrupted.")
            for each in (request, *(row.request for row in self.rows)):
                each.error = problem
            if problem is not error:
                raise
        finally:
            self._end_steps()

    def _end_steps(self) -> None:
        """Free the rows that have ended and let another thread go on; no lock is held while the GPU works."""
        is_done = False
        while not is_done:
            try:
                self.decoder.lane.run(self._leave)
            except BaseException:
                self._hand_over(at_once=True)
                raise
            is_done = self._hand_over()

    def _hand_over(self, *, at_once: bool = False) -> bool:
        """Let another thread do the steps, unless rows have ended, whose request may just have been closed."""
        with self.lock:
            if not at_once and not all(row.is_running for row in self.rows):
                return False
            self._is_stepping = False
            for other in list(self.requests):
                other.wake.notify()
            return True

    def _advance(self) -> None:
        """Generate one more code of each row."""
        with self.lock:
            requests = list(self.requests)
        for request in requests:
            try:
                raise_if_stopped(request.should_stop)
                request.context.run(self.decoder.on_step)
            except Exception as error:  # noqa: BLE001  # raised in the thread of the request
                request.error = error
        self.decoder.lane.run(partial(self._start, requests))
        self._read()
        with self.lock:
            for request in requests:
                if request.is_due():
                    request.wake.notify()

    @torch.inference_mode()
    def _start(self, requests: list[DecodingRequest]) -> None:
        """Let rows leave and join, and start a step of all."""
        self._leave()
        self._join(requests)
        if self.rows:
            self._unread.append((list(self.rows), self._step()))

    @torch.inference_mode()
    def _leave(self) -> None:
        """Drop rows that have ended; the last ones move into their places."""
        running = [index for index, row in enumerate(self.rows) if row.is_running]
        if len(running) == len(self.rows):
            return
        if not running:
            self.rows = []
            self._begin()
            return
        last = running[:]
        order = [index if index in running else last.pop() for index in range(len(running))]
        self.rows = [self.rows[index] for index in order]
        self._step.select(order)

    def _join(self, requests: list[DecodingRequest]) -> None:
        """Take waiting sentences in, in turns: first of requests that have the fewest rows."""
        joining: list[BatchRow] = []
        while row := self._next(requests, Counter(row.request for row in (*self.rows, *joining))):
            joining.append(row)
        if not joining:
            return
        if not self.rows:
            self._begin()
        self._step.reserve(len(self.rows) + len(joining))
        for group in [joining] if self.decoder.uses_graphs else [[row] for row in joining]:
            try:
                self._step.add([(row.sentence, row.request.prompt, row.request.config) for row in group])
                self.rows += group
            except Exception as error:  # noqa: BLE001  # raised in the threads of their requests
                for row in group:
                    row.request.error = error
                del self._step.cache.lengths[len(self.rows) :]

    def _next(self, requests: list[DecodingRequest], counts: Counter[DecodingRequest]) -> BatchRow | None:
        def may_have(request: DecodingRequest) -> int:
            size = request.config.batch_size
            return size if counts.total() < max(MAX_ROWS, size) else 1

        open_requests = (request for request in requests if not (request.closed or request.error))
        waiting = [request for request in open_requests if request.waiting and counts[request] < may_have(request)]
        request = min(waiting, key=lambda each: counts[each], default=None)
        return request.waiting.popleft() if request else None

    def _read(self) -> None:
        """Read the codes of the steps before the newest one, or of all without graphs."""
        while len(self._unread) > self.decoder.uses_graphs:
            rows, (arrival, latents) = self._unread.popleft()
            codes, logprobs = arrival.wait()[:, : len(rows)].tolist()  # the only wait for the device in a step
            for row, code, logprob, latent in zip(rows, codes, logprobs, latents, strict=True):
                if row.is_running:
                    row.add(int(code), latent, logprob, stop=self.decoder.stop)
