"""The processes that train together: what they agree on, and who writes.

Every process runs the same loop over its own part of each update. The first one writes events and files.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.optim import Optimizer

from utils.config import TrainConfig
from utils.core.paths import Project
from utils.runs import Run, create
from utils.runs.job import StopRequested
from utils.training.sharding import is_sharded
from utils.training.tracking import is_missing, logging_folder

if TYPE_CHECKING:
    from accelerate import Accelerator


def shared_run(config: TrainConfig) -> Run:
    """Make the folder of a run that several processes were started for; all of them return it."""
    from accelerate import PartialState
    from accelerate.utils import broadcast_object_list

    state = PartialState(cpu=not torch.cuda.is_available())
    name = [""]
    if state.is_main_process:
        name = [str(create("train", config, Project(Path(config.output_path))).folder)]
    broadcast_object_list(name)
    return Run(Path(name[0]))


class Ranks:
    """What this process is among those that train together.

    Args:
        accelerator: Knows the group and the device.
    """

    def __init__(self, accelerator: "Accelerator") -> None:
        self.accelerator = accelerator
        self.index: int = accelerator.process_index
        self.count: int = accelerator.num_processes
        self.is_first: bool = accelerator.is_main_process

    def summed(self, values: Sequence[float] | Tensor) -> list[float]:
        """Add numbers up over all processes."""
        tensor = torch.as_tensor(values, dtype=torch.float32, device=self.accelerator.device)
        if self.count > 1:
            torch.distributed.all_reduce(tensor)
        return [float(value) for value in tensor.tolist()]

    def prepare(self, model: nn.Module, optimizer: Optimizer) -> tuple[nn.Module, Optimizer]:
        """Wrap both for several processes and for half precision; a sharded model is ready as it is."""
        if is_sharded(model):
            return model, optimizer
        prepared: tuple[nn.Module, Optimizer] = self.accelerator.prepare(model, optimizer)
        return prepared

    def accumulating(self, model: nn.Module, *, last: bool) -> contextlib.AbstractContextManager[object]:
        """Let the processes exchange gradients in the last batch of an update only."""
        if isinstance(model, FSDPModule):
            model.set_requires_gradient_sync(last)
            return contextlib.nullcontext()
        return contextlib.nullcontext() if last else self.accelerator.no_sync(model)

    def gathered(self, mine: object) -> list[Any]:
        """Return what every process brings, in their order."""
        found: list[Any] = [mine] * self.count
        if self.count > 1:
            torch.distributed.all_gather_object(found, mine)
        return found

    def meet(self) -> None:
        """Wait until all processes are here."""
        self.accelerator.wait_for_everyone()

    def agreed_request(self, request: str) -> str:
        """Return what the first process heard, so that all stop after the same update."""
        number = {"": 0.0, "save": 1.0, "now": 2.0}[request] if self.is_first else 0.0
        return ("", "save", "now")[round(self.summed([number])[0])] if self.count > 1 else request

    def raise_agreed(self, request: str) -> None:
        """Raise StopRequested when all processes agreed to stop."""
        if request:
            raise StopRequested(request)


def make_accelerator(config: TrainConfig, precision: str, run: Run) -> "Accelerator":
    """Join the group of processes, if there is one, and choose the device.

    Args:
        config: The settings of the run.
        precision: "bf16", "fp16" or "no".
        run: Whose folder takes the files of a tracker.
    """
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
    from accelerate.utils import DistributedDataParallelKwargs

    # Else a second run in one Python program would have to have the first one's precision.
    AcceleratorState._reset_state()  # noqa: SLF001
    return Accelerator(
        kwargs_handlers=[DistributedDataParallelKwargs(gradient_as_bucket_view=True)],  # else each gradient is twice
        cpu=not torch.cuda.is_available(),
        mixed_precision=precision,
        log_with=None if config.tracker == "none" or is_missing(config) else config.tracker,
        project_dir=str(logging_folder(run)),
    )
