"""Many recordings at a time on a cluster, through the optional package ``ray``.

These are tasks of Ray's core. Ray Data would not do: it says nothing while a row is worked on, cannot be asked to stop
between two results, and when a worker dies it tells how many blocks are lost but not which.
"""

import contextlib
import functools
import importlib
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from utils.core.errors import ConfigError
from utils.core.paths import ROOT
from utils.dataset.engine import LOOK_SECONDS, Died, Outcome, Tell, available_cores

T = TypeVar("T")
R = TypeVar("R")
ANSWER_SECONDS = 10.0
INSTALL = "Install it with: pip install ray. Or take --engine local, which uses every core of this machine."


def in_cluster(
    work: Callable[[T, Tell], R], tasks: Iterable[T], workers: int, heard: Callable[[T | None, float], None]
) -> Iterator[Outcome[T, R]]:
    """Yield the outcome of each task as it comes; the arguments are those of ``in_pool``, but 0 workers take all cores.

    The cluster is the one that RAY_ADDRESS names; without it, Ray runs on this machine for as long as this lasts.
    """
    ray = _package()
    with _connected(ray, workers):
        do = ray.remote(num_cpus=1, max_retries=0)(_do)  # a recording that kills one process would kill the next
        told = importlib.import_module("ray.util.queue").Queue(actor_options={"num_cpus": 0})
        at_once = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        waiting = iter(tasks)
        busy: dict[Any, T] = {}
        try:
            while True:
                for task in islice(waiting, at_once - len(busy)):
                    busy[do.remote(work, task, told)] = task
                if not busy:
                    return
                done, _ = ray.wait(list(busy), timeout=LOOK_SECONDS)
                with contextlib.suppress(ray.exceptions.RayError):  # its machine may be gone; only shares are lost
                    for name, share in told.get_nowait_batch(told.qsize()):
                        heard(next((task for it, task in busy.items() if it.task_id().hex() == name), None), share)
                for reference in done:
                    yield _outcome(ray, reference, busy.pop(reference))
                heard(None, 0.0)
        finally:
            for reference in busy:
                ray.cancel(reference, force=True)  # it writes whole files only, so nothing is harmed
            told.shutdown(force=True)


def _package() -> Any:  # noqa: ANN401 - the package is optional
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to its makers
    if not os.environ.get("RAY_ADDRESS"):  # read when it is imported: without clusters it listens to this machine only
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # on Linux too, despite its name
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise ConfigError("--engine ray needs the package ray, which is not installed.", hint=INSTALL) from error


@contextlib.contextmanager
def _connected(ray: Any, workers: int) -> Iterator[None]:  # noqa: ANN401
    """Join the cluster, or start Ray on this machine."""
    address = os.environ.get("RAY_ADDRESS", "")
    here = {"num_cpus": workers or available_cores(), "include_dashboard": False}
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _knock(address)
        ray.init(
            address or "local",
            runtime_env={"py_modules": [str(ROOT / "utils")]},  # other machines need the packages, but not this program
            **({} if address else here),
        )
    except (OSError, ValueError, RuntimeError) as error:
        hint = "Set RAY_ADDRESS to the cluster, as in 10.0.0.5:6379, or unset it to stay on this machine."
        raise ConfigError(f"Ray does not start ({address or 'here'}): {error}", hint=hint) from error
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, handler)  # Ray's own would end the run before what is finished is told
    try:
        yield
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Find out whether anybody answers there: Ray itself would wait for minutes, deaf to a wish to stop."""
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=ANSWER_SECONDS).close()


def _outcome(ray: Any, reference: Any, task: T) -> Outcome[T, Any]:  # noqa: ANN401
    try:
        result, error = ray.get(reference)
    except ray.exceptions.RayTaskError as failure:  # the answer could not be sent
        return Outcome(task, None, failure)
    except ray.exceptions.RayError as failure:
        return Outcome(task, None, Died(f"the process that read it died ({type(failure).__name__})"))
    return Outcome(task, result, error)


def _do(work: Callable[[T, Tell], R], task: T, told: Any) -> tuple[R | None, Exception | None]:  # noqa: ANN401
    """Do one task on some machine of the cluster."""
    name = importlib.import_module("ray").get_runtime_context().get_task_id()
    try:
        return work(task, functools.partial(_tell, told, name)), None
    except Exception as error:  # noqa: BLE001  # the caller judges it
        return None, error


def _tell(told: Any, name: str, share: float) -> None:  # noqa: ANN401
    told.actor.put_nowait.remote((name, share))  # nobody waits for it to arrive
