"""TF32: faster, less precise float32 matrix products (10 instead of 23 mantissa bits) on GPUs that support it.

It applies to what autocast leaves in float32, and to everything if mixed precision is off.
"""

import torch

from utils.core.events import Change

CAPABILITY = (8, 0)  # Ampere
NAME = "enable_tf32"


def use_tf32(device: torch.device | str, *, enabled: bool = True, capability: tuple[int, int] | None = None) -> Change:
    """Turn TF32 on or off for matrix products and convolutions; count the settings that changed."""
    kind = torch.device(device)
    if kind.type != "cuda":
        return Change(NAME, 0, f"not supported by this device: {kind.type}")
    version = capability or torch.cuda.get_device_capability(kind)
    if version < CAPABILITY:
        return Change(
            NAME, 0, f"not supported by this device: compute capability {version[0]}.{version[1]}, TF32 needs 8.0"
        )
    before = tf32_state()
    torch.backends.cuda.matmul.allow_tf32 = enabled
    torch.backends.cudnn.allow_tf32 = enabled
    moved = [name for name, state in tf32_state().items() if state != before[name]]
    return Change(NAME, len(moved), f"{'on' if enabled else 'off'} for {' and '.join(before)}")


def tf32_state() -> dict[str, bool]:
    """Return for what TF32 is on."""
    return {
        "matrix products": torch.backends.cuda.matmul.allow_tf32,
        "convolutions": torch.backends.cudnn.allow_tf32,
    }
