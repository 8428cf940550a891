"""Choose the precision of training on this device. The weights are always float32.

torch's ``is_bf16_supported`` also accepts emulation, which is much slower than float32, so the hardware is checked.
"""

import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

BF16_CAPABILITY = (8, 0)  # Ampere: the first GPUs that multiply bf16
FP16_CAPABILITY = (7, 0)  # Volta: the first with fp16 tensor cores
BF16_FLAGS = ("amx_bf16", "avx512_bf16")  # CPU flags of bf16 hardware on Linux

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "no": torch.float32}


@dataclass(frozen=True)
class Precision:
    """A precision and the reason for it.

    Attributes:
        dtype: ``mixed_precision`` of accelerate: "bf16", "fp16" or "no".
        scaler: Whether gradients must be scaled, because small ones would become zero in fp16.
        reason: Why it was chosen.
    """

    dtype: Literal["bf16", "fp16", "no"]
    scaler: bool
    reason: str

    @property
    def torch_dtype(self) -> torch.dtype:
        """Return the dtype of matrix products."""
        return DTYPES[self.dtype]


def choose_precision(
    device: torch.device | str,
    *,
    wanted: bool = True,
    capability: tuple[int, int] | None = None,
    processor: Collection[str] | None = None,
) -> Precision:
    """Choose the fastest precision that the hardware supports.

    Args:
        device: Device of the model.
        wanted: Whether half precision is allowed.
        capability: Compute capability of the GPU; by default that of the device.
        processor: Feature flags of the CPU; by default those of this machine.
    """
    kind = torch.device(device)
    if not wanted:
        return Precision("no", scaler=False, reason="mixed precision is off")
    if kind.type == "cuda":
        return _on_gpu(capability or torch.cuda.get_device_capability(kind))
    if kind.type == "cpu":
        return _on_cpu(processor_flags() if processor is None else processor)
    return Precision("no", scaler=False, reason=f"half precision on {kind.type} is not tested here")


def processor_flags() -> frozenset[str]:
    """Return the feature flags of this CPU on Linux; empty on other systems."""
    source = Path("/proc/cpuinfo")
    if sys.platform != "linux" or not source.is_file():
        return frozenset()
    lines = source.read_text(encoding="utf-8", errors="replace").splitlines()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def _on_gpu(capability: tuple[int, int]) -> Precision:
    name = f"compute capability {capability[0]}.{capability[1]}"
    if capability >= BF16_CAPABILITY:
        return Precision("bf16", scaler=False, reason=f"{name} supports bf16")
    if capability >= FP16_CAPABILITY:
        return Precision("fp16", scaler=True, reason=f"{name} supports fp16 but not bf16; gradients are scaled")
    return Precision("no", scaler=False, reason=f"{name} is below 7.0 and has no fast half precision")


def _on_cpu(flags: Collection[str]) -> Precision:
    supported = [flag for flag in BF16_FLAGS if flag in flags]
    if supported:
        return Precision("bf16", scaler=False, reason=f"this CPU supports bf16 ({supported[0]})")
    return Precision("no", scaler=False, reason=f"this CPU does not support bf16 (neither {' nor '.join(BF16_FLAGS)})")
