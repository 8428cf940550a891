"""Many recordings at a time on this machine: processes of which one may die without taking anything with it."""

import functools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, NamedTuple, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")
Tell = Callable[[float], None]
LOOK_SECONDS = 0.5  # how long a wish to stop may go unheard


class Outcome(NamedTuple, Generic[T, R]):
    """A task with its result, or with what went wrong."""

    task: T
    result: R | None
    error: BaseException | None = None


class Died(Exception):  # noqa: N818  # what happened, not what it is
    """The process that did a task is gone."""


def in_turn(
    work: Callable[[T, Tell], R], tasks: Iterable[T], heard: Callable[[T | None, float], None]
) -> Iterator[Outcome[T, R]]:
    """Yield the outcome of each task, done in this process; the arguments are those of ``in_pool``."""
    for task in tasks:
        try:
            outcome: Outcome[T, R] = Outcome(task, work(task, functools.partial(heard, task)))
        except Exception as error:  # noqa: BLE001  # the caller judges it
            outcome = Outcome(task, None, error)
        yield outcome


def in_pool(
    work: Callable[[T, Tell], R],
    tasks: Iterable[T],
    workers: int,
    heard: Callable[[T | None, float], None],
) -> Iterator[Outcome[T, R]]:
    """Yield the outcome of each task as it comes.

    Args:
        work: Done in another process; it, the tasks and the results have to be picklable.
        tasks: Taken one by one, no more than are at work.
        workers: Processes.
        heard: Told how far a task is, and called with None at least twice a second; what it raises ends the work.
    """
    waiting = iter(tasks)
    idle: list[_Worker[T, R]] = []
    busy: dict[Any, _Worker[T, R]] = {}
    try:
        while True:
            for task in islice(waiting, workers - len(busy)):
                worker = idle.pop() if idle else _Worker(work)
                worker.give(task)
                busy[worker.pipe] = worker
            if not busy:
                return
            for pipe in wait(list(busy), LOOK_SECONDS):
                message = busy[pipe].hear()
                if isinstance(message, float):
                    heard(busy[pipe].task, message)
                    continue
                worker = busy.pop(pipe)
                if not isinstance(message.error, Died):
                    idle.append(worker)
                yield message
            heard(None, 0.0)
    finally:
        for worker in [*idle, *busy.values()]:
            worker.end()


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker(Generic[T, R]):
    """One process, and the pipe to it."""

    def __init__(self, work: Callable[[T, Tell], R]) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks, and Windows has none
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, work), daemon=True)
        self.process.start()
        theirs.close()  # so that its death is the end of the pipe
        self.task: T | None = None

    def give(self, task: T) -> None:
        self.task = task
        self.pipe.send(task)

    def hear(self) -> "Outcome[T, R] | float":
        """Take a message: how far it is, or how it ended."""
        task = cast("T", self.task)
        try:
            kind, value = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return Outcome(task, None, Died(f"the process that read it died ({self.process.exitcode})"))
        if kind == "share":
            return float(value)
        return Outcome(task, None, value) if kind == "error" else Outcome(task, value)

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()  # it writes whole files only, so nothing is harmed
        self.process.join()


def _serve(pipe: Connection, work: Callable[[Any, Tell], Any]) -> None:
    """Do the tasks that come through a pipe until its other end is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to hear
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            message: tuple[str, Any] = "result", work(task, lambda share: pipe.send(("share", share)))
        except Exception as error:  # noqa: BLE001  # it goes to the parent, which judges it
            message = "error", error
        pipe.send(message)


def _end_with(sentinel: int) -> None:
    """End this process as soon as its parent is gone."""
    wait([sentinel])
    os._exit(1)
