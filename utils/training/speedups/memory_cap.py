"""Limit the GPU memory of a run, and configure torch's allocator."""

import sys

import torch

from utils.core.events import Change

NAME = "max_memory_fraction"
GIB = 2**30


def cap_memory(fraction: float, device: torch.device | str) -> Change:
    """Limit this process to a share of the GPU's memory (1: no limit); beyond it, torch runs out of memory."""
    kind = torch.device(device)
    if kind.type != "cuda":
        return Change(NAME, 0, f"not supported by this device: {kind.type}")
    torch.cuda.set_per_process_memory_fraction(fraction, kind)
    total = torch.cuda.get_device_properties(kind).total_memory / GIB
    if fraction == 1:
        return Change(NAME, 0, f"no limit: {total:.1f} GiB")
    return Change(NAME, 1, f"{fraction * total:.1f} of {total:.1f} GiB")


def allocator_environment() -> dict[str, str]:
    """Return environment variables to set before a training process first uses the GPU.

    With expandable segments, batches of changing length do not fragment the memory. torch reads this once, when CUDA
    starts. Windows does not support it.
    """
    return {"PYTORCH_ALLOC_CONF": "expandable_segments:True"} if sys.platform == "linux" else {}
