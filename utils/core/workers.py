"""Run many tasks at a time, in worker processes.

A worker that dies loses its own task only.
"""

import contextlib
import functools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, NamedTuple, TypeVar

from utils.core.processes import identity, is_alive
from utils.core.threads import THREADS, threads_each

T = TypeVar("T")
R = TypeVar("R")
ReportShare = Callable[[float], None]  # called by a task with the share that is done
Work = Callable[[T, ReportShare], R]
OnProgress = Callable[[T | None, float], None]
POLL_SECONDS = 0.5  # how often the caller can cancel


class TaskResult(NamedTuple, Generic[T, R]):
    """A task with its result or its error."""

    task: T
    result: R | None
    error: BaseException | None = None


class WorkerDiedError(Exception):
    """The process that worked on a task is gone."""

    def __init__(self, reason: object) -> None:
        super().__init__(f"the process that worked on it crashed ({reason})")


def run_serially(work: Work[T, R], tasks: Iterable[T], on_progress: OnProgress[T]) -> Iterator[TaskResult[T, R]]:
    """Yield the outcome of each task, run in this process; the arguments are those of ``run_in_processes``."""
    for task in tasks:
        yield TaskResult(task, *attempt(work, task, functools.partial(on_progress, task)))


# Long because tasks, processes and their pipes are followed in one loop, which must end them all.
def run_in_processes(
    work: Work[T, R], tasks: Iterable[T], workers: int, on_progress: OnProgress[T]
) -> Iterator[TaskResult[T, R]]:
    """Yield the outcome of each task as it finishes; tasks and results must be picklable.

    The processes share the cores of this machine.

    ``on_progress`` is called with a task and the share that is done, and with None at least twice a second. What it
    raises ends the work.
    """
    waiting = iter(tasks)
    idle: list[Worker] = []
    busy: dict[Any, tuple[Worker, T]] = {}  # by their pipes
    try:
        while True:
            for task in islice(waiting, workers - len(busy)):
                if not idle:
                    idle.append(Worker(_serve_tasks, threads_each(workers)))
                    idle[0].pipe.send(work)
                worker = idle.pop()
                worker.pipe.send(task)
                busy[worker.pipe] = worker, task
            if not busy:
                return
            for pipe in wait(list(busy), POLL_SECONDS):
                worker, task = busy[pipe]
                try:
                    message = worker.pipe.recv()
                except (EOFError, OSError):
                    worker.process.join()
                    message = None, WorkerDiedError(worker.process.exitcode)
                if isinstance(message, float):
                    on_progress(task, message)
                    continue
                del busy[pipe]
                outcome = TaskResult(task, *message)
                if not isinstance(outcome.error, WorkerDiedError):
                    idle.append(worker)
                yield outcome
            on_progress(None, 0.0)
    finally:
        for worker in [*idle, *(worker for worker, _ in busy.values())]:
            worker.kill()


class Worker:
    """A process that calls ``serve`` with its end of a pipe and these arguments, until the pipe is closed."""

    def __init__(self, serve: Callable[..., None], *arguments: object) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the locks of threads; Windows has none
        self.pipe, child_end = context.Pipe()
        self.process = context.Process(target=_run, args=(serve, child_end, *arguments), daemon=True)
        self.process.start()
        child_end.close()  # so that the pipe ends when the process dies

    def kill(self) -> None:
        self.pipe.close()
        self.process.kill()  # files are written atomically, so nothing is damaged
        self.process.join()


def _run(serve: Callable[..., None], pipe: Connection, *arguments: object) -> None:
    """Run in a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    with contextlib.suppress(EOFError):
        serve(pipe, *arguments)


def _exit_with_parent() -> None:
    """End this process when its parent is gone, even if it is busy or another process holds the pipe open."""
    if (parent := multiprocessing.parent_process()) is None or parent.pid is None:
        return
    recorded = identity(parent.pid)
    while not wait([parent.sentinel], POLL_SECONDS) and is_alive(parent.pid, recorded):
        continue
    os._exit(1)


def _serve_tasks(pipe: Connection, threads: int) -> None:
    """Receive the work, then run tasks; reply with the shares that are done, then with the result and the error."""
    os.environ[THREADS] = str(threads)  # before the work arrives, which may import torch
    work: Work[Any, Any] = pipe.recv()
    while True:
        pipe.send(attempt(work, pipe.recv(), lambda share: pipe.send(float(share))))


def attempt(work: Callable[..., R], *arguments: object) -> tuple[R | None, Exception | None]:
    """Return the result of a call, or its error."""
    try:
        return work(*arguments), None
    except Exception as error:  # noqa: BLE001
        return None, error
