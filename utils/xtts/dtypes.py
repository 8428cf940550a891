"""Which number format the arithmetic of training may use here. The weights stay float32 in each case.

torch's ``is_bf16_supported`` also counts emulation, which is slower than float32 by far; so the hardware is asked.
"""

import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

BF16_CAPABILITY = (8, 0)  # Ampere: the first GPUs that multiply bf16
FP16_CAPABILITY = (7, 0)  # Volta: the first whose fp16 products are worth it, with tensor cores
BF16_FLAGS = ("amx_bf16", "avx512_bf16")  # processors that multiply bf16, as Linux names them

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "no": torch.float32}


@dataclass(frozen=True)
class Precision:
    """A number format, and why.

    Attributes:
        dtype: What ``accelerate`` calls mixed_precision: "bf16", "fp16" or "no".
        scaler: Small gradients of fp16 have to be scaled up, or they become zero.
        reason: Why it was chosen, or why half precision was refused.
    """

    dtype: Literal["bf16", "fp16", "no"]
    scaler: bool
    reason: str

    @property
    def torch_dtype(self) -> torch.dtype:
        """Return what matrix products compute in."""
        return DTYPES[self.dtype]


def choose_precision(
    device: torch.device | str,
    *,
    wanted: bool = True,
    capability: tuple[int, int] | None = None,
    processor: Collection[str] | None = None,
) -> Precision:
    """Choose the fastest number format that the device really has.

    Args:
        device: Where the model computes.
        wanted: Half precision is welcome.
        capability: The GPU's compute capability; read from the device by default.
        processor: What the CPU can do; read from the machine by default.
    """
    kind = torch.device(device)
    if not wanted:
        return Precision("no", scaler=False, reason="mixed precision is switched off")
    if kind.type == "cuda":
        return _on_gpu(capability or torch.cuda.get_device_capability(kind))
    if kind.type == "cpu":
        return _on_cpu(processor_flags() if processor is None else processor)
    return Precision("no", scaler=False, reason=f"half precision on {kind.type} is not tested here")


def processor_flags() -> frozenset[str]:
    """Return what this CPU can do, by the names that Linux gives; nothing on other systems."""
    source = Path("/proc/cpuinfo")
    if sys.platform != "linux" or not source.is_file():
        return frozenset()
    lines = source.read_text(encoding="utf-8", errors="replace").splitlines()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def _on_gpu(capability: tuple[int, int]) -> Precision:
    name = f"compute capability {capability[0]}.{capability[1]}"
    if capability >= BF16_CAPABILITY:
        return Precision("bf16", scaler=False, reason=f"{name} multiplies bf16")
    if capability >= FP16_CAPABILITY:
        return Precision("fp16", scaler=True, reason=f"{name} multiplies fp16 and not bf16; gradients are scaled")
    return Precision("no", scaler=False, reason=f"{name} is below 7.0 and has no fast half precision")


def _on_cpu(flags: Collection[str]) -> Precision:
    found = [flag for flag in BF16_FLAGS if flag in flags]
    if found:
        return Precision("bf16", scaler=False, reason=f"this CPU multiplies bf16 ({found[0]})")
    return Precision("no", scaler=False, reason=f"this CPU does not multiply bf16 (neither {' nor '.join(BF16_FLAGS)})")
