"""TF32: matrix products of float32 numbers with 10 bits behind the point instead of 23, on GPUs that have it.

It acts on what autocast leaves in float32, and on everything where mixed precision is off.
"""

import torch

from utils.core.change import Change

CAPABILITY = (8, 0)  # Ampere
NAME = "enable_tf32"


def use_tf32(device: torch.device | str, *, enabled: bool = True, capability: tuple[int, int] | None = None) -> Change:
    """Switch TF32 in matrix products and in cuDNN's convolutions; count the settings that moved.

    Args:
        device: Where the model computes.
        enabled: On or off.
        capability: The GPU's compute capability; read from the device by default.
    """
    kind = torch.device(device)
    if kind.type != "cuda":
        return Change(NAME, 0, f"not on this device: {kind.type} has no TF32")
    found = capability or torch.cuda.get_device_capability(kind)
    if found < CAPABILITY:
        return Change(NAME, 0, f"not on this device: compute capability {found[0]}.{found[1]}, TF32 begins at 8.0")
    before = tf32_state()
    torch.backends.cuda.matmul.allow_tf32 = enabled
    torch.backends.cudnn.allow_tf32 = enabled
    moved = [name for name, state in tf32_state().items() if state != before[name]]
    return Change(NAME, len(moved), f"{'on' if enabled else 'off'} for {' and '.join(before)}")


def tf32_state() -> dict[str, bool]:
    """Return where TF32 is on."""
    return {
        "matrix products": torch.backends.cuda.matmul.allow_tf32,
        "convolutions": torch.backends.cudnn.allow_tf32,
    }
