"""What works on recordings besides the processes of this machine: another engine, and speech recognisers."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from utils.config import DatasetConfig
from utils.core import integrations
from utils.core.facts import Report
from utils.core.workers import OnProgress, R, T, TaskResult, Work
from utils.dataset.clip import Recording
from utils.dataset.pipeline import needs_transcription
from utils.recognition.recognisers import Recogniser
from utils.recognition.recognisers.choice import Kind
from utils.recognition.recognisers.isolated import open_recogniser

Recognisers = tuple[Recogniser | None, Recogniser | None]  # the second one is for comparison


class Engine(Protocol):
    """Runs tasks and recognisers elsewhere than in processes of this machine."""

    def run(self, work: Work[T, R], tasks: Iterable[T], on_progress: OnProgress[T]) -> Iterator[TaskResult[T, R]]:
        """Yield the outcome of each task as ``run_in_processes`` does."""

    def recogniser(self, local: Recogniser, share: float) -> Recogniser:
        """Return the same recogniser with this share of each GPU, or refuse one that cannot be sent."""

    def close(self) -> None:
        """Release what it holds."""


@contextlib.contextmanager
def open_engine(
    given: Recognisers | None, recordings: Sequence[Recording], settings: DatasetConfig, report: Report
) -> Iterator[tuple[Engine | None, Recognisers]]:
    """Open the engine that the settings name, and recognisers if there is something to transcribe or to compare."""
    engine = None
    with contextlib.ExitStack() as stack:
        if recordings and settings.engine == "ray":
            engine = integrations.require("ray_engine")(settings.workers)
            stack.callback(engine.close)
        first, second = given or _open_recognisers(recordings, settings, report, stack)
        if engine:
            share = 1 / max(1, sum(one is not None for one in (first, second)))
            first, second = (one and engine.recogniser(one, share) for one in (first, second))
        yield engine, (first, second)


def _open_recognisers(
    recordings: Sequence[Recording], settings: DatasetConfig, report: Report, stack: contextlib.ExitStack
) -> Recognisers:
    if settings.recogniser == "none" or not recordings:
        return None, None

    def opened(model: str, kind: Kind) -> Recogniser:
        return stack.enter_context(
            open_recogniser(
                model, settings.language, report, kind=kind, device=settings.device, compute_type=settings.compute_type
            )
        )

    waits = any(map(needs_transcription, recordings))
    first = opened(settings.recogniser_model, settings.recogniser) if waits else None
    return first, opened(settings.second_model, "auto") if settings.second_model else None
