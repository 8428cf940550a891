"""Settings of the GPU: TF32, and a limit of the memory that a run may use."""

import os
import sys

import torch
import torch.utils.deterministic

from utils.core.facts import Optimization
from utils.training.facts import DeviceLacks, MemoryLimit, SameNumbers, Tf32

CAPABILITY = (8, 0)  # Ampere, the first with TF32


def use_tf32(device: torch.device | str, *, enabled: bool = True) -> Optimization:
    """Turn TF32 on or off for matrix products and convolutions; count the settings that changed.

    TF32 is faster and less precise (10 instead of 23 mantissa bits). It applies to what autocast leaves in float32, and
    to everything if mixed precision is off.
    """
    if lacking := lacks_tf32(device):
        return Optimization("enable_tf32", 0, DeviceLacks(lacking))
    before = tf32_state()
    torch.backends.cuda.matmul.allow_tf32 = enabled
    torch.backends.cudnn.allow_tf32 = enabled
    changed = [name for name, state in tf32_state().items() if state != before[name]]
    return Optimization("enable_tf32", len(changed), Tf32(enabled))


def lacks_tf32(device: torch.device | str) -> str:
    """Return why a device has no TF32: its kind, ROCm, or its compute capability; empty if it has it."""
    kind = torch.device(device).type
    if kind != "cuda":
        return kind
    if torch.version.hip:
        return "ROCm"
    major, minor = torch.cuda.get_device_capability(device)
    return "" if (major, minor) >= CAPABILITY else f"compute capability {major}.{minor} of 8.0"


def tf32_state() -> dict[str, bool]:
    return {
        "matrix products": torch.backends.cuda.matmul.allow_tf32,
        "convolutions": torch.backends.cudnn.allow_tf32,
    }


def make_deterministic(device: torch.device | str) -> Optimization:
    """Use kernels that give the same numbers in each run, until the process ends; what has none raises an error.

    Fused attention then adds its gradients in a fixed order, which it does not with ``warn_only``. A CPU gives the
    same numbers anyway.
    """
    kind = torch.device(device)
    if kind.type not in {"cpu", "cuda"}:
        return Optimization("deterministic", 0, DeviceLacks(kind.type))
    if kind.type == "cuda":
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"  # cuBLAS is asked for it in this mode
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]  # only finds errors
        torch.use_deterministic_algorithms(mode=True)
    return Optimization("deterministic", int(kind.type == "cuda"), SameNumbers())


def cap_memory(fraction: float, device: torch.device | str) -> Optimization:
    """Limit this process to a share of the GPU's memory (1: no limit); beyond it, torch runs out of memory."""
    kind = torch.device(device)
    if kind.type != "cuda":
        return Optimization("max_memory_fraction", 0, DeviceLacks(kind.type))
    torch.cuda.set_per_process_memory_fraction(fraction, kind)
    total = torch.cuda.get_device_properties(kind).total_memory
    return Optimization("max_memory_fraction", int(fraction < 1), MemoryLimit(round(fraction * total), total))


def allocator_environment() -> dict[str, str]:
    """Return environment variables to set before a training process first uses the GPU.

    With expandable segments, batches of changing length do not fragment the memory. torch reads this once, when CUDA
    starts. Windows does not support it.
    """
    return {"PYTORCH_ALLOC_CONF": "expandable_segments:True"} if sys.platform == "linux" else {}
