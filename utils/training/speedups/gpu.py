"""Settings of the GPU: TF32, and a limit of the memory that a run may use."""

import sys

import torch

from utils.core.events import Change

CAPABILITY = (8, 0)  # Ampere, the first with TF32
GIB = 2**30


def use_tf32(device: torch.device | str, *, enabled: bool = True, capability: tuple[int, int] | None = None) -> Change:
    """Turn TF32 on or off for matrix products and convolutions; count the settings that changed.

    TF32 is faster and less precise (10 instead of 23 mantissa bits). It applies to what autocast leaves in float32, and
    to everything if mixed precision is off.
    """
    kind = torch.device(device)
    if kind.type != "cuda":
        return Change("enable_tf32", 0, f"not supported by this device: {kind.type}")
    major, minor = capability or torch.cuda.get_device_capability(kind)
    if (major, minor) < CAPABILITY:
        detail = f"not supported by this device: compute capability {major}.{minor}, TF32 needs 8.0"
        return Change("enable_tf32", 0, detail)
    before = tf32_state()
    torch.backends.cuda.matmul.allow_tf32 = enabled
    torch.backends.cudnn.allow_tf32 = enabled
    changed = [name for name, state in tf32_state().items() if state != before[name]]
    return Change("enable_tf32", len(changed), f"{'on' if enabled else 'off'} for {' and '.join(before)}")


def tf32_state() -> dict[str, bool]:
    return {
        "matrix products": torch.backends.cuda.matmul.allow_tf32,
        "convolutions": torch.backends.cudnn.allow_tf32,
    }


def cap_memory(fraction: float, device: torch.device | str) -> Change:
    """Limit this process to a share of the GPU's memory (1: no limit); beyond it, torch runs out of memory."""
    kind = torch.device(device)
    if kind.type != "cuda":
        return Change("max_memory_fraction", 0, f"not supported by this device: {kind.type}")
    torch.cuda.set_per_process_memory_fraction(fraction, kind)
    total = torch.cuda.get_device_properties(kind).total_memory / GIB
    if fraction == 1:
        return Change("max_memory_fraction", 0, f"no limit: {total:.1f} GiB")
    return Change("max_memory_fraction", 1, f"{fraction * total:.1f} of {total:.1f} GiB")


def allocator_environment() -> dict[str, str]:
    """Return environment variables to set before a training process first uses the GPU.

    With expandable segments, batches of changing length do not fragment the memory. torch reads this once, when CUDA
    starts. Windows does not support it.
    """
    return {"PYTORCH_ALLOC_CONF": "expandable_segments:True"} if sys.platform == "linux" else {}
