"""torch.compile for the layers of the GPT-2, one by one.

Layers share their code, so one is compiled for each shape of a batch and used for all. The loader therefore fills
batches up to a few fixed lengths; what is judged or spoken runs uncompiled. Weights, their names and what is saved
stay as they are.
"""

import contextlib
import sys
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from utils.core.change import Change
from utils.core.errors import SpeedupError

NAME = "use_compile"
Backend = str | Callable[..., Any]
SHAPES = 64  # torch gives up after 8 shapes by default, and goes on uncompiled without a word


def compile_blocks(gpt: nn.Module, device: torch.device | str, *, backend: Backend = "inductor") -> Change:
    """Have the layers of the GPT-2 compiled at the first batch of each shape.

    Args:
        gpt: coqui's GPT.
        device: Where it will compute.
        backend: What compiles; only "inductor" knows modes: on a GPU the one that records CUDA graphs.
    """
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
    return Change(
        NAME, len(blocks), f"layers of the GPT, {settings.get('mode', backend)}, each shape when it first comes"
    )


def compiled(gpt: nn.Module) -> int:
    """Return how many layers of the GPT-2 are compiled, or will be at their first batch."""
    return sum(block._compiled_call_impl is not None for block in _blocks(gpt))  # noqa: SLF001


def uncompiled() -> contextlib.AbstractContextManager[object]:
    """Run compiled layers as they were, where lengths are not those of updates and each would compile them again."""
    if "torch._dynamo" not in sys.modules:  # nothing has been compiled, and importing it takes seconds
        return contextlib.nullcontext()
    stance: contextlib.AbstractContextManager[object] = torch.compiler.set_stance("force_eager")
    return stance


def check_compiler(device: torch.device) -> None:
    """Compile one addition, so that a missing compiler shows now and not in the first update."""
    try:
        torch.compile(_addition)(torch.ones(2, device=device))
    except Exception as error:  # torch raises whatever its compilers raise
        raise SpeedupError(
            f"use_compile: nothing can be compiled on this machine for {device.type}: {type(error).__name__}.",
            hint="Install a C++ compiler (on Debian: apt install g++ python3-dev), or switch use_compile off.",
        ) from error


def _addition(numbers: torch.Tensor) -> torch.Tensor:
    return numbers + 1


def _blocks(gpt: nn.Module) -> list[nn.Module]:
    return list(gpt.get_submodule("gpt.h").children())
