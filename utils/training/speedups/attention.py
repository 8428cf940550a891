"""Fast attention: fused kernels in the GPT-2, the conditioning encoder and the perceiver; torch selects them."""

from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn.attention import SDPBackend

from utils.core.facts import Optimization
from utils.training.errors import SettingRefusedError
from utils.training.facts import LayersChanged
from utils.xtts import modules

FUSED, EAGER = "sdpa", "eager"  # as transformers names them
BACKENDS = {
    SDPBackend.FLASH_ATTENTION: "flash",
    SDPBackend.EFFICIENT_ATTENTION: "efficient",
    SDPBackend.MATH: "math",
    SDPBackend.CUDNN_ATTENTION: "cudnn",
}


class AttentionReport(NamedTuple):
    """Attention of one part of the model, read from its live modules."""

    layers: int
    implementation: str  # "sdpa" or "eager"
    kernel: str  # "none" if torch selects none


def use_attention(gpt: nn.Module, implementation: str) -> Optimization:
    """Use SDPA, or eager attention as coqui-tts does.

    cuDNN's attention is left out: its gradients differ from run to run, and its dropout may be a multiple of 1/16.
    """
    torch.backends.cuda.enable_cudnn_sdp(enabled=False)
    switch = modules.unfuse if implementation == EAGER else modules.fuse
    changed = _switch_gpt2(gpt, implementation)
    layers = [len(_gpt2_attentions(gpt))]
    for part in _conditioning_parts(gpt).values():
        changed += switch(part)
        layers.append(modules.count_fused(part)[0])
    return Optimization("enable_sdpa", changed, LayersChanged(implementation, *layers))


def report(
    gpt: nn.Module, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
) -> dict[str, AttentionReport]:
    """Report the attention of each part, read from its live modules, and the kernel that torch selects for it."""
    attentions = _gpt2_attentions(gpt)
    implementation = _gpt2_implementation(attentions)
    dropout = max(float(attention.attn_dropout.p) for attention in attentions)  # some kernels do not support it
    kernel = selected_kernel(device, dtype, attentions[0].head_dim, dropout=dropout, causal=True)
    parts = {"gpt": AttentionReport(len(attentions), implementation, kernel if implementation == FUSED else "none")}
    for name, part in _conditioning_parts(gpt).items():
        layers, fused = modules.count_fused(part)
        if fused not in {0, layers}:
            raise SettingRefusedError("enable_sdpa", "partly_fused", f"{name} {fused}/{layers}")
        kernel = selected_kernel(device, dtype, modules.head_width(part), causal=False)
        parts[name] = AttentionReport(layers, FUSED, kernel) if fused else AttentionReport(layers, EAGER, "none")
    return parts


def _switch_gpt2(gpt: nn.Module, implementation: str) -> int:
    """Change the attention of the GPT-2 and verify it: transformers only warns if it does not."""
    attentions = _gpt2_attentions(gpt)
    before = _gpt2_implementation(attentions)
    gpt2: Any = gpt.get_submodule("gpt")
    gpt2.set_attn_implementation(implementation)
    if (now := _gpt2_implementation(attentions)) != implementation:
        raise SettingRefusedError("enable_sdpa", "not_switched", now)
    return 0 if before == now else len(attentions)


def _gpt2_attentions(gpt: nn.Module) -> list[Any]:
    return [block.get_submodule("attn") for block in modules.gpt2_layers(gpt)]


def _gpt2_implementation(attentions: list[Any]) -> str:
    """Return the implementation that the layers will use in their next forward pass."""
    return ", ".join(sorted({str(layer.config._attn_implementation) for layer in attentions}))  # noqa: SLF001


def _conditioning_parts(gpt: nn.Module) -> dict[str, nn.Module]:
    children = dict(gpt.named_children())
    return {name: children[name] for name in modules.CONDITIONING if name in children}


def selected_kernel(
    device: torch.device | str, dtype: torch.dtype, width: int, *, dropout: float = 0.0, causal: bool
) -> str:
    """Return the kernel that torch would select for this attention; ``width`` is the number of channels per head."""
    query = torch.zeros(1, 1, 64, width, device=device, dtype=dtype, requires_grad=True)
    try:
        number = torch._fused_sdp_choice(query, query, query, None, dropout, causal)  # noqa: SLF001 - no public function
    except RuntimeError:
        return "none"
    return BACKENDS.get(SDPBackend(number), "none")
