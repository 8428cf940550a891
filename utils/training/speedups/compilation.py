"""torch.compile for the layers of the GPT-2, one by one.

Layers share their code, so one compilation per batch shape serves all of them. The loader therefore pads batches to a
few fixed lengths. Evaluation and speech run uncompiled. Weights, their names and saved files do not change.
"""

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from utils.core.errors import SpeedupError
from utils.core.events import Change

NAME = "use_compile"
Backend = str | Callable[..., Any]
SHAPES = 64  # by default, torch silently stops compiling after 8 shapes


def compile_blocks(gpt: nn.Module, device: torch.device | str, *, backend: Backend = "inductor") -> Change:
    """Compile the layers of the GPT-2 at the first batch of each shape; on a GPU, inductor records CUDA graphs."""
    kind = torch.device(device)
    settings: dict[str, Any] = {"backend": backend, "dynamic": False}
    if backend == "inductor":
        check_compiler(kind)
        settings["mode"] = "reduce-overhead" if kind.type == "cuda" else "default"
    limits = torch._dynamo.config  # noqa: SLF001 - torch's documents name it
    limits.recompile_limit = max(limits.recompile_limit, SHAPES)
    blocks = _blocks(gpt)
    for block in blocks:
        block.compile(**settings)
    return Change(NAME, len(blocks), f"layers of the GPT, {settings.get('mode', backend)}, each shape on first use")


def compiled(gpt: nn.Module) -> int:
    """Return how many layers of the GPT-2 are compiled, or will be at the first batch."""
    return sum(block._compiled_call_impl is not None for block in _blocks(gpt))  # noqa: SLF001


def uncompiled() -> contextlib.AbstractContextManager[object]:
    """Run compiled layers uncompiled, for batches whose lengths would trigger new compilations."""
    if "torch._dynamo" not in sys.modules:  # nothing is compiled, and the import takes seconds
        return contextlib.nullcontext()
    stance: contextlib.AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance


def check_compiler(device: torch.device) -> None:
    """Compile one addition, so that a missing compiler is noticed before the first update."""
    try:
        torch.compile(_addition)(torch.ones(2, device=device))
    except Exception as error:  # torch raises whatever its compilers raise
        raise SpeedupError(
            f"use_compile: torch.compile does not work on this machine for {device.type}: {type(error).__name__}.",
            hint="Install a C++ compiler (on Debian: apt install g++ python3-dev), or turn off use_compile.",
        ) from error


def _addition(numbers: torch.Tensor) -> torch.Tensor:
    return numbers + 1


def _blocks(gpt: nn.Module) -> list[nn.Module]:
    return list(gpt.get_submodule("gpt.h").children())
