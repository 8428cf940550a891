"""Training in several processes: what they agree on, and which one writes files.

Every process runs the same loop over its own part of each update. The first one writes events and files.
"""

import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from utils.config import TrainConfig
from utils.core.facts import StopRequested
from utils.training.launcher import is_member
from utils.training.metrics import tracker_is_missing
from utils.xtts.device import own_device

if TYPE_CHECKING:
    from accelerate import Accelerator

PATIENCE = timedelta(days=30)
MADE = "made: "  # before what was made; without it, making it failed
TURNS = count()  # every process asks in the same order


def from_first(make: Callable[[], str]) -> str:
    """Return what the first of several processes makes, however long it takes.

    The others wait at the store of the launcher and not in a collective, which NCCL ends after ten minutes.

    Raises:
        StopRequested: The first process failed; it records why.
    """
    if not is_member():
        return make()
    store = _store()
    key = f"from the first process {next(TURNS)}"
    if os.environ["RANK"] == "0":
        outcome = ""
        try:
            outcome = MADE + make()
        finally:
            store.set(key, outcome)
    store.wait([key], PATIENCE)
    outcome = bytes(store.get(key)).decode()
    if not outcome.startswith(MADE):
        raise StopRequested
    return outcome.removeprefix(MADE)


@cache
def _store() -> Any:  # noqa: ANN401  # torch's store, whose class is not there in every build
    return next(iter(rendezvous("env://")))[0]


class Ranks:
    """The rank of this process among those that train together; the accelerator holds group and device."""

    def __init__(self, accelerator: "Accelerator") -> None:
        self.accelerator = accelerator
        self.index: int = accelerator.process_index
        self.count: int = accelerator.num_processes
        self.is_first: bool = accelerator.is_main_process

    def sum(self, values: Sequence[float]) -> list[float]:
        if self.count == 1:  # without a detour over the device
            return list(values)
        summed: list[float] = self.reduce(torch.tensor(values, device=self.accelerator.device)).tolist()
        return summed

    def reduce(self, values: Tensor) -> Tensor:
        """Sum a tensor over all processes, on the device."""
        if self.count > 1:
            torch.distributed.all_reduce(values)
        return values

    def gather(self, value: object) -> list[Any]:
        """Return the value of every process, ordered by rank."""
        values: list[Any] = [value] * self.count
        if self.count > 1:
            torch.distributed.all_gather_object(values, value)
        return values

    def wait(self) -> None:
        self.accelerator.wait_for_everyone()

    def close(self) -> None:
        """Leave the process group together, before any process exits."""
        self.wait()
        self.accelerator.state.destroy_process_group()

    def agree(self, request: str) -> str:
        """Return what the first process has to do, so that all save or stop after the same update."""
        requests = ("", "epoch", "late", "save", "now")
        return requests[round(self.sum([requests.index(request) if self.is_first else 0])[0])]


def make_accelerator(config: TrainConfig, precision: str, folder: Path) -> "Accelerator":
    """Join the process group, if there is one, and choose the device; ``precision`` is "bf16", "fp16" or "no"."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
    from accelerate.utils import DistributedDataParallelKwargs

    # Otherwise a second run in the same process would have to use the precision and the device of the first.
    AcceleratorState._reset_state(reset_partial_state=not is_member())  # noqa: SLF001
    return Accelerator(
        kwargs_handlers=[DistributedDataParallelKwargs(gradient_as_bucket_view=True)],  # no copy of each gradient
        cpu=own_device(config.device).type == "cpu",  # else it finds the same GPU
        mixed_precision=precision,
        log_with=None if config.tracker == "none" or tracker_is_missing(config) else config.tracker,
        project_dir=str(folder / "tracker"),
    )
