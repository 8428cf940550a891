"""Fast attention: fused kernels in the GPT-2, in the conditioning encoder and in the perceiver."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from utils.core.change import Change
from utils.core.errors import SpeedupError
from utils.training.speedups import kernels
from utils.training.speedups.byte_dropout import DroppingAttention
from utils.xtts import conditioning

FUSED, WRITTEN_OUT, FLASH_2 = "sdpa", "eager", "flash_attention_2"  # as transformers names them
LISTENERS = ("conditioning_encoder", "conditioning_perceiver")  # parts of coqui's GPT; XTTS v1 has no perceiver


@dataclass(frozen=True)
class AttentionReport:
    """How one part of the model attends, read from its live modules.

    Attributes:
        layers: How many attentions it has.
        implementation: "sdpa", "eager" or "flash_attention_2".
        kernel: What computes it in training: "flash", "efficient", "math", "cudnn", "byte dropout"
            for ours on a CPU, or "none" for nothing of torch's.
    """

    layers: int
    implementation: str
    kernel: str


def use_sdpa(gpt: nn.Module) -> Change:
    """Fuse the attention of all three parts; count those that were written out before.

    Args:
        gpt: coqui's GPT.
    """
    return _use(gpt, FUSED, conditioning.fuse)


def use_eager(gpt: nn.Module) -> Change:
    """Write the attention of all three parts out, as plain coqui-tts does in two of them."""
    return _use(gpt, WRITTEN_OUT, conditioning.unfuse)


def use_flash_attention_2(gpt: nn.Module, device: torch.device | str, dtype: torch.dtype) -> Change:
    """Let the package flash_attn compute the attention of the GPT-2, and fuse the other two parts.

    Args:
        gpt: coqui's GPT.
        device: Where it will compute.
        dtype: The number format that it will compute in; the package knows 16 bits only.
    """
    kernels.check_flash_attention_2(device, dtype)
    return _use(gpt, FLASH_2, conditioning.fuse)


def dropout(gpt: nn.Module) -> float:
    """Return the highest dropout inside the attention of the GPT-2; some kernels cannot drop."""
    return max(float(attention.attn_dropout.p) for attention in _gpt2_attentions(gpt))


def report(
    gpt: nn.Module, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
) -> dict[str, AttentionReport]:
    """Tell what each part uses, read from its live modules, and which kernel torch takes for it in training.

    Args:
        gpt: coqui's GPT.
        device: Where it computes.
        dtype: The number format that it computes in.
    """
    attentions = _gpt2_attentions(gpt)
    first, implementation = attentions[0], _gpt2_implementation(attentions)
    kernel = kernels.taken(device, dtype, first.head_dim, dropout=dropout(gpt), causal=True)
    if all(isinstance(layer, DroppingAttention) for layer in attentions) and dropout(gpt) and dtype == torch.float32:
        kernel = "byte dropout"
    parts = {"gpt": AttentionReport(len(attentions), implementation, kernel if implementation == FUSED else "none")}
    for name, listener in _listeners(gpt).items():
        layers, fused = conditioning.count_fused(listener)
        if fused not in {0, layers}:
            raise SpeedupError(f"{name}: {fused} of {layers} layers are fused.", hint="Load the model afresh.")
        kernel = kernels.taken(device, dtype, conditioning.head_width(listener), causal=False)
        parts[name] = AttentionReport(layers, FUSED, kernel) if fused else AttentionReport(layers, WRITTEN_OUT, "none")
    return parts


def _use(gpt: nn.Module, implementation: str, change: Callable[[nn.Module], int]) -> Change:
    listeners = _listeners(gpt)
    changed = [_switch_gpt2(gpt, implementation), *(change(listener) for listener in listeners.values())]
    layers = [len(_gpt2_attentions(gpt)), *(conditioning.count_fused(listener)[0] for listener in listeners.values())]
    names = ["GPT", *(name.replace("_", " ") for name in listeners)]
    told = [
        f"{number} layers of the {name}{'' if now else ' (they were before)'}"
        for number, name, now in zip(layers, names, changed, strict=True)
    ]
    return Change("enable_sdpa", sum(changed), f"{implementation}: {' + '.join(told)}")


def _switch_gpt2(gpt: nn.Module, implementation: str) -> int:
    """Switch the GPT-2 and look whether it obeyed: transformers only warns where it does not."""
    attentions = _gpt2_attentions(gpt)
    before = _gpt2_implementation(attentions)
    gpt2: Any = gpt.get_submodule("gpt")
    gpt2.set_attn_implementation(implementation)
    if (now := _gpt2_implementation(attentions)) != implementation:
        raise SpeedupError(
            f"enable_sdpa: the GPT-2 stays with {now} attention where {implementation} is wanted.",
            hint="Install the version of transformers that requirements.txt names.",
        )
    return 0 if before == now else len(attentions)


def _gpt2_attentions(gpt: nn.Module) -> list[Any]:
    return [block.get_submodule("attn") for block in gpt.get_submodule("gpt.h").children()]


def _gpt2_implementation(attentions: list[Any]) -> str:
    """Return what the layers themselves will look at in their next forward pass."""
    return ", ".join(sorted({str(layer.config._attn_implementation) for layer in attentions}))  # noqa: SLF001


def _listeners(gpt: nn.Module) -> dict[str, nn.Module]:
    children = dict(gpt.named_children())
    return {name: children[name] for name in LISTENERS if name in children}
