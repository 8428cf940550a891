"""Process many recordings at a time: in worker processes on this machine, or on a Ray cluster.

A worker that dies loses its own task only.
"""

import contextlib
import functools
import importlib
import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from multiprocessing.connection import Connection, wait
from typing import Any, Generic, NamedTuple, TypeVar

from utils.core.errors import ConfigError
from utils.core.paths import ROOT
from utils.runs.processes import identity, is_alive

T = TypeVar("T")
R = TypeVar("R")
ReportShare = Callable[[float], None]  # called by a task with the share that is done
OnProgress = Callable[[T | None, float], None]
POLL_SECONDS = 0.5  # how often the caller can cancel
CONNECT_SECONDS = 10.0
INSTALL_RAY = "Install it with: pip install ray. Or use --engine local, which uses every core of this machine."


class Outcome(NamedTuple, Generic[T, R]):
    """A task with its result or its error."""

    task: T
    result: R | None
    error: BaseException | None = None


class WorkerDiedError(Exception):
    """The process that worked on a task is gone."""

    def __init__(self, reason: object) -> None:
        super().__init__(f"the process that read it crashed ({reason})")


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_serially(
    work: Callable[[T, ReportShare], R], tasks: Iterable[T], on_progress: OnProgress[T]
) -> Iterator[Outcome[T, R]]:
    """Yield the outcome of each task, run in this process; the arguments are those of ``run_in_processes``."""
    for task in tasks:
        yield Outcome(task, *_attempt(work, task, functools.partial(on_progress, task)))


def run_in_processes(
    work: Callable[[T, ReportShare], R], tasks: Iterable[T], workers: int, on_progress: OnProgress[T]
) -> Iterator[Outcome[T, R]]:
    """Yield the outcome of each task as it finishes; tasks and results must be picklable.

    ``on_progress`` is called with a task and the share that is done, and with None at least twice a second. What it
    raises ends the work.
    """
    waiting = iter(tasks)
    idle: list[Worker] = []
    busy: dict[Any, tuple[Worker, T]] = {}  # by their pipes
    try:
        while True:
            for task in islice(waiting, workers - len(busy)):
                worker = idle.pop() if idle else Worker(_serve_tasks, work)
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
                outcome = Outcome(task, *message)
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


def _serve_tasks(pipe: Connection, work: Callable[[Any, ReportShare], Any]) -> None:
    """Run tasks; reply with the shares that are done, then with the result and the error."""
    while True:
        pipe.send(_attempt(work, pipe.recv(), lambda share: pipe.send(float(share))))


def _attempt(work: Callable[[T, ReportShare], R], task: T, report: ReportShare) -> tuple[R | None, Exception | None]:
    """Return the result of a task, or its error."""
    try:
        return work(task, report), None
    except Exception as error:  # noqa: BLE001
        return None, error


def run_on_ray(
    work: Callable[[T, ReportShare], R], tasks: Iterable[T], workers: int, on_progress: OnProgress[T]
) -> Iterator[Outcome[T, R]]:
    """Yield the outcome of each task as it finishes; the arguments are those of ``run_in_processes``.

    It joins the cluster in RAY_ADDRESS, or starts Ray on this machine; 0 workers use all cores. These are tasks of Ray
    Core: Ray Data reports nothing within a row, and not which row was lost when a worker dies.
    """
    with _ray_cluster(workers) as ray:
        remote = ray.remote(num_cpus=1, max_retries=0)(_run_ray_task)  # a file that kills a worker would kill the next
        reports = importlib.import_module("ray.util.queue").Queue(actor_options={"num_cpus": 0})
        limit = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = iter(tasks)
        busy: dict[Any, T] = {}
        try:
            while True:
                for task in islice(waiting, limit - len(busy)):
                    busy[remote.remote(work, task, reports)] = task
                if not busy:
                    return
                done, _ = ray.wait(list(busy), timeout=POLL_SECONDS)
                by_id = {reference.task_id().hex(): task for reference, task in busy.items()}
                with contextlib.suppress(ray.exceptions.RayError):  # the queue may be lost; only progress is
                    for task_id, share in reports.get_nowait_batch(reports.qsize()):
                        on_progress(by_id.get(task_id), share)
                for reference in done:
                    try:
                        outcome = ray.get(reference)
                    except ray.exceptions.RayTaskError as failure:  # the result could not be sent
                        outcome = None, failure
                    except ray.exceptions.RayError as failure:
                        outcome = None, WorkerDiedError(type(failure).__name__)
                    yield Outcome(busy.pop(reference), *outcome)
                on_progress(None, 0.0)
        finally:
            for reference in busy:
                ray.cancel(reference, force=True)  # files are written atomically, so nothing is damaged
            reports.shutdown(force=True)


@contextlib.contextmanager
def _ray_cluster(workers: int) -> Iterator[Any]:
    """Join the cluster, or start Ray on this machine, and yield the package."""
    address = os.environ.get("RAY_ADDRESS", "")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not address:  # read on import: without a cluster it listens on this machine only
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # on Linux too, despite its name
    try:
        ray = importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise ConfigError("--engine ray needs the package ray, which is not installed.", hint=INSTALL_RAY) from error
    local = {"num_cpus": workers or available_cores(), "include_dashboard": False}
    handler = signal.getsignal(signal.SIGTERM)
    try:
        host, _, port = address.rpartition(":")
        if host and port.isdigit():  # Ray itself would wait for minutes
            socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
        ray.init(
            address or "local",
            runtime_env={"py_modules": [str(ROOT / "utils")]},  # other machines have the packages, not this program
            **({} if address else local),
        )
    except (OSError, ValueError, RuntimeError) as error:
        hint = "Set RAY_ADDRESS to the cluster, for example 10.0.0.5:6379, or unset it to use this machine."
        raise ConfigError(f"Ray does not start ({address or 'this machine'}): {error}", hint=hint) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # Ray's handler would end the run before finished tasks are recorded
    try:
        yield ray
    finally:
        ray.shutdown()


def _run_ray_task(work: Callable[[T, ReportShare], R], task: T, reports: Any) -> tuple[R | None, Exception | None]:  # noqa: ANN401
    """Run one task on some machine of the cluster."""
    task_id = importlib.import_module("ray").get_runtime_context().get_task_id()
    return _attempt(work, task, lambda share: reports.actor.put_nowait.remote((task_id, share)))
