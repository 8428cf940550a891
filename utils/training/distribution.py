"""Training in several processes: what they agree on, which one writes files, and sharding.

Every process runs the same loop over its own part of each update. The first one writes events and files.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint import state_dict as states
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.optim import Optimizer

from utils.config import TrainConfig
from utils.core.errors import ConfigError
from utils.core.events import Change
from utils.core.paths import Project
from utils.runs import Run, create
from utils.training.metrics import tracker_is_missing

if TYPE_CHECKING:
    from accelerate import Accelerator


def shared_run(config: TrainConfig) -> Run:
    """Create the run folder for several processes; all of them return it."""
    from accelerate import PartialState
    from accelerate.utils import broadcast_object_list

    state = PartialState(cpu=not torch.cuda.is_available())
    name = [""]
    if state.is_main_process:
        name = [str(create("train", config, Project(Path(config.output_path))).folder)]
    broadcast_object_list(name)
    return Run(Path(name[0]))


class Ranks:
    """This process among those that train together; the accelerator knows the group and the device."""

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

    def prepare(self, model: nn.Module, optimizer: Optimizer) -> tuple[nn.Module, Optimizer]:
        """Wrap both for several processes and mixed precision. A sharded model is returned as it is."""
        if is_sharded(model):
            return model, optimizer
        return self.accelerator.prepare(model, optimizer)  # type: ignore[no-any-return]

    def accumulate(self, model: nn.Module, *, last: bool) -> contextlib.AbstractContextManager[object]:
        """Synchronize gradients in the last batch of an update only."""
        if isinstance(model, FSDPModule):
            model.set_requires_gradient_sync(last)
            return contextlib.nullcontext()
        return contextlib.nullcontext() if last else self.accelerator.no_sync(model)

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


def make_accelerator(config: TrainConfig, precision: str, run: Run) -> "Accelerator":
    """Join the process group, if there is one, and choose the device; ``precision`` is "bf16", "fp16" or "no"."""
    from accelerate import Accelerator
    from accelerate.state import AcceleratorState
    from accelerate.utils import DistributedDataParallelKwargs

    # Otherwise a second run in the same process would have to use the precision of the first.
    AcceleratorState._reset_state()  # noqa: SLF001
    return Accelerator(
        kwargs_handlers=[DistributedDataParallelKwargs(gradient_as_bucket_view=True)],  # no copy of each gradient
        cpu=not torch.cuda.is_available(),
        mixed_precision=precision,
        log_with=None if config.tracker == "none" or tracker_is_missing(config) else config.tracker,
        project_dir=str(run.folder / "tracker"),
    )


def shard(model: nn.Module, precision: str, processes: int) -> Change:
    """Shard a model over all processes (FSDP2). Create the optimizer afterwards.

    accelerate shards on GPUs only and silently ignores the setting on a CPU, so torch is called directly. This way it
    can be tested with two processes on any machine. The gradient scaler of fp16 does not support sharded gradients.
    """
    if processes < 2:
        raise ConfigError("sharding: fsdp needs several processes.", hint="Set num_processes to the number of GPUs.")
    if precision == "fp16":
        raise ConfigError("sharding: fsdp does not support fp16.", hint="Turn off enable_mixed_precision.")
    layers = list(model.get_submodule("gpt.gpt.h").children())
    for part in (*layers, model):
        fully_shard(part)
    if precision == "bf16":
        model.forward = torch.autocast(next(model.parameters()).device.type, torch.bfloat16)(model.forward)
    return Change("sharding", len(layers) + 1, f"{len(layers)} layers and the rest, over {processes} processes")


def is_sharded(model: nn.Module) -> bool:
    return isinstance(model, FSDPModule)


def gather_states(model: nn.Module, optimizer: Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Gather the states of model and optimizer. Every process must call this; the first one gets them."""
    options = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights: Any = states.get_model_state_dict(model, options=options)
    moments: Any = states.get_optimizer_state_dict(model, optimizer, options=options)
    return weights, moments


def load_states(model: nn.Module, optimizer: Optimizer, weights: dict[str, Any], moments: dict[str, Any]) -> None:
    """Give every process its part of both states."""
    options = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    states.set_model_state_dict(model, weights, options=options)
    states.set_optimizer_state_dict(model, optimizer, moments, options=options)
