"""Fast attention: fused kernels in the GPT-2, the conditioning encoder and the perceiver, and which kernels may run.

The choice of kernels applies to the whole process, including the backward pass, where checkpointed layers choose again.
A kernel that the device, dtype or dropout does not support is rejected at once, by trying it.
"""

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - as torch's documents have it
from torch import nn
from torch.backends import cuda as switches  # they apply to CPUs too
from torch.nn.attention import SDPBackend

from utils.core.errors import SpeedupError
from utils.core.events import Change
from utils.training.speedups.dropout import DroppingAttention
from utils.xtts import modules

FUSED, EAGER, FLASH_2 = "sdpa", "eager", "flash_attention_2"  # as transformers names them
BACKENDS = {
    SDPBackend.FLASH_ATTENTION: "flash",
    SDPBackend.EFFICIENT_ATTENTION: "efficient",
    SDPBackend.MATH: "math",
    SDPBackend.CUDNN_ATTENTION: "cudnn",
}
KERNELS: dict[str, tuple[Callable[[], bool], Callable[[bool], None]]] = {  # whether it is allowed, and how to allow it
    "flash": (switches.flash_sdp_enabled, switches.enable_flash_sdp),
    "efficient": (switches.mem_efficient_sdp_enabled, switches.enable_mem_efficient_sdp),
    "math": (switches.math_sdp_enabled, switches.enable_math_sdp),
    "cudnn": (switches.cudnn_sdp_enabled, switches.enable_cudnn_sdp),
}
EVERY = frozenset(KERNELS)

Kernel = Literal["auto", "flash", "efficient", "math", "flash_attention_2"]


class AttentionReport(NamedTuple):
    """Attention of one part of the model, read from its live modules."""

    layers: int
    implementation: str  # "sdpa", "eager" or "flash_attention_2"
    kernel: str  # of torch, "byte dropout" for our own on a CPU, or "none" if torch selects none


def use_attention(
    gpt: nn.Module, implementation: str, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
) -> Change:
    """Use SDPA, eager attention as coqui-tts, or the flash_attn package in the GPT-2.

    The conditioning encoder and the perceiver use SDPA unless attention is eager.
    """
    if implementation == FLASH_2:
        _check_flash_attention_2(device, dtype)
    switch = modules.unfuse if implementation == EAGER else modules.fuse
    changed = {"GPT": (len(_gpt2_attentions(gpt)), _switch_gpt2(gpt, implementation))}
    for name, part in _conditioning_parts(gpt).items():
        changed[name.replace("_", " ")] = modules.count_fused(part)[0], switch(part)
    parts = ", ".join(f"{name} {layers}" for name, (layers, _) in changed.items())
    return Change("enable_sdpa", sum(now for _, now in changed.values()), f"{implementation} in layers: {parts}")


def dropout(gpt: nn.Module) -> float:
    """Return the highest attention dropout of the GPT-2; some kernels do not support dropout."""
    return max(float(attention.attn_dropout.p) for attention in _gpt2_attentions(gpt))


def report(
    gpt: nn.Module, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
) -> dict[str, AttentionReport]:
    """Report the attention of each part, read from its live modules, and the kernel that torch selects for it."""
    attentions = _gpt2_attentions(gpt)
    implementation = _gpt2_implementation(attentions)
    kernel = selected_kernel(device, dtype, attentions[0].head_dim, dropout=dropout(gpt), causal=True)
    if all(isinstance(layer, DroppingAttention) for layer in attentions) and dropout(gpt) and dtype == torch.float32:
        kernel = "byte dropout"
    parts = {"gpt": AttentionReport(len(attentions), implementation, kernel if implementation == FUSED else "none")}
    for name, part in _conditioning_parts(gpt).items():
        layers, fused = modules.count_fused(part)
        if fused not in {0, layers}:
            raise SpeedupError(f"{name}: {fused} of {layers} layers are fused.", hint="Reload the model.")
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
    return {name: children[name] for name in modules.CONDITIONING if name in children}


def choose_kernel(
    kernel: Kernel, device: torch.device | str, *, dtype: torch.dtype = torch.float32, dropout: float = 0.0
) -> Change:
    """Allow one kernel, or all of them for "auto" and "flash_attention_2", which is not a kernel of torch."""
    before = allowed_kernels()
    wanted = frozenset({kernel}) & EVERY or EVERY
    if kernel == FLASH_2:
        _check_flash_attention_2(device, dtype)
    _allow(wanted)
    if wanted != EVERY:
        try:
            _try(torch.device(device), dtype, dropout)
        except RuntimeError as error:
            _allow(before)
            raise SpeedupError(
                f"attention_kernel: {kernel} cannot run on {device} in {dtype} with a dropout of {dropout}.",
                hint="Choose auto.",
            ) from error
    return Change("attention_kernel", len(before ^ wanted), f"kernels allowed: {', '.join(sorted(wanted))}")


def allowed_kernels() -> frozenset[str]:
    return frozenset(name for name, (is_allowed, _) in KERNELS.items() if is_allowed())


@contextmanager
def every_kernel() -> Iterator[None]:
    """Allow all kernels temporarily: the masks of speech do not work with the fastest one."""
    before = allowed_kernels()
    _allow(EVERY)
    try:
        yield
    finally:
        _allow(before)


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


def _check_flash_attention_2(device: torch.device | str, dtype: torch.dtype) -> None:
    if importlib.util.find_spec("flash_attn") is None:
        raise SpeedupError(
            "attention_kernel: flash_attention_2 needs the package flash-attn.",
            hint="Install it with: pip install flash-attn --no-build-isolation, or choose auto.",
        )
    if torch.device(device).type != "cuda" or dtype not in {torch.float16, torch.bfloat16}:
        raise SpeedupError(
            f"attention_kernel: flash_attention_2 needs a CUDA GPU and a 16-bit type, not {device} and {dtype}.",
            hint="Turn on enable_mixed_precision, or choose auto.",
        )


def _allow(names: frozenset[str]) -> None:
    for name, (_, allow) in KERNELS.items():
        allow(name in names)


def _try(device: torch.device, dtype: torch.dtype, dropout: float) -> None:
    """Run attention forward and backward as the GPT does; torch raises if no allowed kernel supports it."""
    query = torch.zeros(1, 1, 16, 64, device=device, dtype=dtype, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each kernel warns why it cannot run; the error is enough
        out = F.scaled_dot_product_attention(query, query, query, dropout_p=dropout, is_causal=True)
    torch.autograd.backward(out.sum())
