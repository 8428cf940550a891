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
from typing import Any, Generic, NamedTuple, TypeVar, cast

from utils.core.errors import ConfigError
from utils.core.paths import ROOT

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


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_serially(
    work: Callable[[T, ReportShare], R], tasks: Iterable[T], on_progress: OnProgress[T]
) -> Iterator[Outcome[T, R]]:
    """Yield the outcome of each task, run in this process; the arguments are those of ``run_in_processes``."""
    for task in tasks:
        try:
            outcome: Outcome[T, R] = Outcome(task, work(task, functools.partial(on_progress, task)))
        except Exception as error:  # noqa: BLE001  # the caller decides
            outcome = Outcome(task, None, error)
        yield outcome


def run_in_processes(
    work: Callable[[T, ReportShare], R], tasks: Iterable[T], workers: int, on_progress: OnProgress[T]
) -> Iterator[Outcome[T, R]]:
    """Yield the outcome of each task as it finishes.

    Args:
        work: Called in another process; it, the tasks and the results must be picklable.
        tasks: Started as workers become free.
        workers: Number of processes.
        on_progress: Called with a task and the share that is done, and with None at least twice a second. What it
            raises ends the work.
    """
    waiting = iter(tasks)
    idle: list[_Worker[T, R]] = []
    busy: dict[Any, _Worker[T, R]] = {}
    try:
        while True:
            for task in islice(waiting, workers - len(busy)):
                worker = idle.pop() if idle else _Worker(work)
                worker.start(task)
                busy[worker.pipe] = worker
            if not busy:
                return
            for pipe in wait(list(busy), POLL_SECONDS):
                message = busy[pipe].receive()
                if isinstance(message, float):
                    on_progress(busy[pipe].task, message)
                    continue
                worker = busy.pop(pipe)
                if not isinstance(message.error, WorkerDiedError):
                    idle.append(worker)
                yield message
            on_progress(None, 0.0)
    finally:
        for worker in [*idle, *busy.values()]:
            worker.kill()


class _Worker(Generic[T, R]):
    """One process and the pipe to it."""

    def __init__(self, work: Callable[[T, ReportShare], R]) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would copy the locks of threads; Windows has none
        self.pipe, child_end = context.Pipe()
        self.process = context.Process(target=_serve, args=(child_end, work), daemon=True)
        self.process.start()
        child_end.close()  # so that the pipe ends when the process dies
        self.task: T | None = None

    def start(self, task: T) -> None:
        self.task = task
        self.pipe.send(task)

    def receive(self) -> "Outcome[T, R] | float":
        """Return the share that is done, or the outcome."""
        task = cast("T", self.task)
        try:
            kind, value = self.pipe.recv()
        except (EOFError, OSError):
            self.process.join()
            return Outcome(task, None, WorkerDiedError(f"the process that read it crashed ({self.process.exitcode})"))
        if kind == "progress":
            return float(value)
        return Outcome(task, None, value) if kind == "error" else Outcome(task, value)

    def kill(self) -> None:
        self.pipe.close()
        self.process.kill()  # files are written atomically, so nothing is damaged
        self.process.join()


def _serve(pipe: Connection, work: Callable[[Any, ReportShare], Any]) -> None:
    """Run tasks from a pipe until its other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
    if (parent := multiprocessing.parent_process()) is not None:
        threading.Thread(target=_exit_with, args=(parent.sentinel,), daemon=True).start()
    while True:
        try:
            task = pipe.recv()
        except EOFError:
            return
        try:
            message: tuple[str, Any] = "result", work(task, lambda share: pipe.send(("progress", share)))
        except Exception as error:  # noqa: BLE001  # the parent decides
            message = "error", error
        pipe.send(message)


def _exit_with(sentinel: int) -> None:
    """End this process as soon as its parent is gone."""
    wait([sentinel])
    os._exit(1)


def run_on_ray(
    work: Callable[[T, ReportShare], R], tasks: Iterable[T], workers: int, on_progress: OnProgress[T]
) -> Iterator[Outcome[T, R]]:
    """Yield the outcome of each task as it finishes; the arguments are those of ``run_in_processes``.

    It joins the cluster in RAY_ADDRESS, or starts Ray on this machine; 0 workers use all cores. These are tasks of Ray
    Core: Ray Data reports nothing within a row, and not which row was lost when a worker dies.
    """
    ray = _import_ray()
    with _ray_cluster(ray, workers):
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
                    yield _ray_outcome(ray, reference, busy.pop(reference))
                on_progress(None, 0.0)
        finally:
            for reference in busy:
                ray.cancel(reference, force=True)  # files are written atomically, so nothing is damaged
            reports.shutdown(force=True)


def _import_ray() -> Any:  # noqa: ANN401 - the package is optional
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if not os.environ.get("RAY_ADDRESS"):  # read on import: without a cluster it listens on this machine only
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # on Linux too, despite its name
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise ConfigError("--engine ray needs the package ray, which is not installed.", hint=INSTALL_RAY) from error


@contextlib.contextmanager
def _ray_cluster(ray: Any, workers: int) -> Iterator[None]:  # noqa: ANN401
    """Join the cluster, or start Ray on this machine."""
    address = os.environ.get("RAY_ADDRESS", "")
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
        yield
    finally:
        ray.shutdown()


def _ray_outcome(ray: Any, reference: Any, task: T) -> Outcome[T, Any]:  # noqa: ANN401
    try:
        result, error = ray.get(reference)
    except ray.exceptions.RayTaskError as failure:  # the result could not be sent
        return Outcome(task, None, failure)
    except ray.exceptions.RayError as failure:
        return Outcome(task, None, WorkerDiedError(f"the process that read it crashed ({type(failure).__name__})"))
    return Outcome(task, result, error)


def _run_ray_task(work: Callable[[T, ReportShare], R], task: T, reports: Any) -> tuple[R | None, Exception | None]:  # noqa: ANN401
    """Run one task on some machine of the cluster."""
    task_id = importlib.import_module("ray").get_runtime_context().get_task_id()
    try:
        return work(task, lambda share: reports.actor.put_nowait.remote((task_id, share))), None
    except Exception as error:  # noqa: BLE001  # the caller decides
        return None, error
