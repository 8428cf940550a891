"""Fast attention: fused kernels in the GPT-2, in the conditioning encoder and in the perceiver."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from utils.core.errors import SpeedupError
from utils.core.events import Change
from utils.training.speedups import kernels
from utils.training.speedups.dropout import DroppingAttention
from utils.xtts import modules

FUSED, EAGER, FLASH_2 = "sdpa", "eager", "flash_attention_2"  # as transformers names them
CONDITIONING = ("conditioning_encoder", "conditioning_perceiver")  # parts of coqui's GPT; XTTS v1 has no perceiver


@dataclass(frozen=True)
class AttentionReport:
    """Attention of one part of the model, read from its live modules.

    Attributes:
        layers: Number of attention layers.
        implementation: "sdpa", "eager" or "flash_attention_2".
        kernel: The kernel used in training: "flash", "efficient", "math", "cudnn", "byte dropout" for our own on a
            CPU, or "none" if torch selects no kernel.
    """

    layers: int
    implementation: str
    kernel: str


def use_sdpa(gpt: nn.Module) -> Change:
    """Use fused attention (SDPA) in all three parts of coqui's GPT."""
    return _use(gpt, FUSED, modules.fuse)


def use_eager(gpt: nn.Module) -> Change:
    """Use unfused attention in all three parts, as coqui-tts does in two of them."""
    return _use(gpt, EAGER, modules.unfuse)


def use_flash_attention_2(gpt: nn.Module, device: torch.device | str, dtype: torch.dtype) -> Change:
    """Use the flash_attn package in the GPT-2 and SDPA in the other two parts; it supports 16-bit types only."""
    kernels.check_flash_attention_2(device, dtype)
    return _use(gpt, FLASH_2, modules.fuse)


def dropout(gpt: nn.Module) -> float:
    """Return the highest attention dropout of the GPT-2; some kernels do not support dropout."""
    return max(float(attention.attn_dropout.p) for attention in _gpt2_attentions(gpt))


def report(
    gpt: nn.Module, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
) -> dict[str, AttentionReport]:
    """Report the attention of each part, read from its live modules, and the kernel that torch selects for it."""
    attentions = _gpt2_attentions(gpt)
    first, implementation = attentions[0], _gpt2_implementation(attentions)
    kernel = kernels.selected_kernel(device, dtype, first.head_dim, dropout=dropout(gpt), causal=True)
    if all(isinstance(layer, DroppingAttention) for layer in attentions) and dropout(gpt) and dtype == torch.float32:
        kernel = "byte dropout"
    parts = {"gpt": AttentionReport(len(attentions), implementation, kernel if implementation == FUSED else "none")}
    for name, part in _conditioning_parts(gpt).items():
        layers, fused = modules.count_fused(part)
        if fused not in {0, layers}:
            raise SpeedupError(f"{name}: {fused} of {layers} layers are fused.", hint="Reload the model.")
        kernel = kernels.selected_kernel(device, dtype, modules.head_width(part), causal=False)
        parts[name] = AttentionReport(layers, FUSED, kernel) if fused else AttentionReport(layers, EAGER, "none")
    return parts


def _use(gpt: nn.Module, implementation: str, change: Callable[[nn.Module], int]) -> Change:
    parts = _conditioning_parts(gpt)
    changed = [_switch_gpt2(gpt, implementation), *(change(part) for part in parts.values())]
    layers = [len(_gpt2_attentions(gpt)), *(modules.count_fused(part)[0] for part in parts.values())]
    names = ["GPT", *(name.replace("_", " ") for name in parts)]
    details = [
        f"{number} layers of the {name}{'' if now else ' (already)'}"
        for number, name, now in zip(layers, names, changed, strict=True)
    ]
    return Change("enable_sdpa", sum(changed), f"{implementation}: {' + '.join(details)}")


def _switch_gpt2(gpt: nn.Module, implementation: str) -> int:
    """Change the attention of the GPT-2 and verify it: transformers only warns if it does not."""
    attentions = _gpt2_attentions(gpt)
    before = _gpt2_implementation(attentions)
    gpt2: Any = gpt.get_submodule("gpt")
    gpt2.set_attn_implementation(implementation)
    if (now := _gpt2_implementation(attentions)) != implementation:
        raise SpeedupError(
            f"enable_sdpa: the GPT-2 still uses {now} attention instead of {implementation}.",
            hint="Install the version of transformers in requirements.txt.",
        )
    return 0 if before == now else len(attentions)


def _gpt2_attentions(gpt: nn.Module) -> list[Any]:
    return [block.get_submodule("attn") for block in gpt.get_submodule("gpt.h").children()]


def _gpt2_implementation(attentions: list[Any]) -> str:
    """Return the implementation that the layers will use in their next forward pass."""
    return ", ".join(sorted({str(layer.config._attn_implementation) for layer in attentions}))  # noqa: SLF001


def _conditioning_parts(gpt: nn.Module) -> dict[str, nn.Module]:
    children = dict(gpt.named_children())
    return {name: children[name] for name in CONDITIONING if name in children}
