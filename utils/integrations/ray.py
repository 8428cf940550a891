"""Prepare recordings on a Ray cluster, or with Ray on this machine.

Every machine needs this folder, the recordings and the project at the same paths, such as on a shared disk.
"""

import os
import random
import signal
import socket
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from utils.core.facts import Report, ignore, log_fact
from utils.core.paths import ROOT
from utils.core.threads import THREADS, available_cores
from utils.core.workers import POLL_SECONDS, OnProgress, R, T, TaskResult, Work, attempt
from utils.media.audio import Samples
from utils.recognition.facts import RecogniserError
from utils.recognition.recognisers import Recogniser, RecogniserSpec, Transcript
from utils.recognition.recognisers.isolated import IsolatedRecogniser
from utils.studio.facts import UsageError

RETRIES = 2  # what kills three workers is at fault itself
CONNECT_SECONDS = 10.0  # Ray itself would try for minutes and then exit


class RayEngine:
    """Runs tasks and recognisers on the cluster of RAY_ADDRESS, or with a Ray that it starts on this machine."""

    def __init__(self, workers: int) -> None:
        address = os.environ.get("RAY_ADDRESS") or "local"
        host, _, port = address.rpartition(":")
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        if address == "local":  # listen on this machine only, despite the name also on Linux
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        environment = {"env_vars": {"PYTHONPATH": str(ROOT)}}
        try:
            import ray

            if port.isdigit() and "://" not in address:
                socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
            handler = signal.getsignal(signal.SIGTERM)
            ray.init(address, include_dashboard=False, runtime_env=environment)
            if signal.getsignal(signal.SIGTERM) != handler:
                signal.signal(signal.SIGTERM, handler)  # of the run, which stores what is finished
        except ModuleNotFoundError as error:
            raise UsageError("no_package", "ray") from error
        except (OSError, RuntimeError, ValueError) as error:
            raise UsageError("no_ray", address, str(error)) from error
        self.close = ray.shutdown
        self.workers = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))

    def run(self, work: Work[T, R], tasks: Iterable[T], on_progress: OnProgress[T]) -> Iterator[TaskResult[T, R]]:
        """Yield the outcome of each task as ``run_in_processes`` does, but run it again if its worker is lost."""
        import ray

        perform = ray.remote(max_retries=RETRIES)(attempt)
        sent = ray.put(work)
        waiting = iter(tasks)
        busy: dict[Any, T] = {}  # by the references to their results
        while True:
            for task in islice(waiting, self.workers - len(busy)):
                busy[perform.remote(sent, task, ignore)] = task
            if not busy:
                return
            for reference in ray.wait(list(busy), timeout=POLL_SECONDS)[0]:
                outcome, lost = attempt(ray.get, reference)
                yield TaskResult(busy.pop(reference), *(outcome or (None, lost)))
            on_progress(None, 0.0)

    def recogniser(self, local: Recogniser, share: float) -> "RayRecogniser":
        """Load a recogniser into this share of each GPU of the cluster, or once per machine if there is none."""
        import ray

        if not isinstance(local, IsolatedRecogniser):
            raise UsageError("not_remote", local.name)
        gpus = int(ray.cluster_resources().get("GPU", 0))
        actor = ray.remote(
            num_cpus=0,
            num_gpus=share if gpus else 0,
            max_restarts=-1,
            max_task_retries=RETRIES,
            scheduling_strategy="SPREAD",
        )(RecogniserActor)
        count = gpus or sum(node["Alive"] for node in ray.nodes())
        actors = [actor.remote(local.spec, report=log_fact) for _ in range(count)]
        return RayRecogniser(local.name, actors)


class RecogniserActor(IsolatedRecogniser):
    """A recogniser that uses all cores of its machine; Ray would allow one."""

    def __init__(self, spec: RecogniserSpec, report: Report) -> None:
        os.environ[THREADS] = str(available_cores())
        super().__init__(spec, report=report)


@dataclass
class RayRecogniser:
    """A recogniser on the cluster; tasks have copies of it."""

    name: str
    actors: Sequence[Any]

    def transcribe(self, clips: Sequence[Samples], language: str) -> list[Transcript]:
        import ray

        actor = random.choice(self.actors)  # noqa: S311  # spreads the load
        try:
            return list(ray.get(actor.transcribe.remote(clips, language)))
        except ray.exceptions.RayTaskError as error:
            raise error.cause from error
        except ray.exceptions.RayActorError as error:  # lost more often than it is loaded again
            raise RecogniserError(self.name, "failed", " ".join(str(error).split()).rstrip(".")) from error
