"""How much of the GPU's memory a run may take, and how torch asks for it."""

import sys

import torch

from utils.core.change import Change

NAME = "max_memory_fraction"
GIB = 2**30


def cap_memory(fraction: float, device: torch.device | str) -> Change:
    """Keep this process below a share of the GPU's memory; beyond it torch runs out of memory.

    Args:
        fraction: Share of all the memory that the GPU has, 1 for no limit.
        device: The GPU.
    """
    kind = torch.device(device)
    if kind.type != "cuda":
        return Change(NAME, 0, f"not on this device: {kind.type} has no memory of its own")
    torch.cuda.set_per_process_memory_fraction(fraction, kind)
    total = torch.cuda.get_device_properties(kind).total_memory / GIB
    if fraction == 1:
        return Change(NAME, 0, f"no limit below the {total:.1f} GiB of this GPU")
    return Change(NAME, 1, f"at most {fraction * total:.1f} of {total:.1f} GiB")


def allocator_environment() -> dict[str, str]:
    """Return what the environment of a training process should hold before it first touches the GPU.

    With segments that grow, batches of changing length leave no holes behind. torch reads this once, when CUDA starts,
    so whoever starts the process sets it. Windows has no such segments.
    """
    return {"PYTORCH_ALLOC_CONF": "expandable_segments:True"} if sys.platform == "linux" else {}
