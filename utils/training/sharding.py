"""Weights, gradients and optimiser state spread over the processes, layer by layer (FSDP2 of torch).

accelerate shards on GPUs alone and passes over the wish on a CPU without a word, so this asks torch itself; then the
same way can be tested with two processes on any machine.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.checkpoint import state_dict as states
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor
from torch.optim import Optimizer

from utils.core.change import Change
from utils.core.errors import ConfigError

WHOLE = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
SPREAD = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
DTYPES = {"bf16": torch.bfloat16}


def shard(model: nn.Module, precision: str, processes: int) -> Change:
    """Spread a model over all processes; the optimiser is made after this.

    Args:
        model: The packed model, on its device.
        precision: "no" or "bf16"; the scaler of fp16 does not know parts of gradients.
        processes: How many train together.
    """
    if processes < 2:
        raise ConfigError("sharding: fsdp needs several processes.", hint="Set num_processes to the number of GPUs.")
    if precision == "fp16":
        raise ConfigError("sharding: fsdp does not work in fp16.", hint="Switch enable_mixed_precision off.")
    layers = list(model.get_submodule("gpt.gpt.h").children())
    for part in (*layers, model):
        fully_shard(part)
    if precision in DTYPES:
        device = next(model.parameters()).device.type
        model.forward = torch.autocast(device, DTYPES[precision])(model.forward)
    return Change("sharding", len(layers) + 1, f"{len(layers)} layers and the rest, over {processes} processes")


def is_sharded(model: nn.Module) -> bool:
    """Tell whether ``shard`` was called."""
    return isinstance(model, FSDPModule)


def whole_states(model: nn.Module, optimizer: Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Gather both states; every process has to call this, the first one gets them."""
    weights: Any = states.get_model_state_dict(model, options=WHOLE)
    moments: Any = states.get_optimizer_state_dict(model, optimizer, options=WHOLE)
    return weights, moments


def load_states(model: nn.Module, optimizer: Optimizer, weights: dict[str, Any], moments: dict[str, Any]) -> None:
    """Give every process its part of both states."""
    states.set_model_state_dict(model, weights, options=SPREAD)
    states.set_optimizer_state_dict(model, optimizer, moments, options=SPREAD)


def length(norm: Tensor) -> float:
    """Return the length of a gradient that may be spread."""
    return float(norm.full_tensor() if isinstance(norm, DTensor) else norm)
