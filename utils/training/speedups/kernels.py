"""Select which of torch's attention kernels may run.

The choice applies to the whole process, including the backward pass, where checkpointed layers choose again. A kernel
that the device, dtype or dropout does not support is rejected at once, by trying it.
"""

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812 - as torch's documents have it
from torch.backends import cuda as switches  # they apply to CPUs too
from torch.nn.attention import SDPBackend

from utils.core.errors import SpeedupError
from utils.core.events import Change

Kernel = Literal["auto", "flash", "efficient", "math", "flash_attention_2"]

NAMES = {
    SDPBackend.FLASH_ATTENTION: "flash",
    SDPBackend.EFFICIENT_ATTENTION: "efficient",
    SDPBackend.MATH: "math",
    SDPBackend.CUDNN_ATTENTION: "cudnn",
}
SETTERS: dict[str, Callable[[bool], None]] = {
    "flash": switches.enable_flash_sdp,
    "efficient": switches.enable_mem_efficient_sdp,
    "math": switches.enable_math_sdp,
    "cudnn": switches.enable_cudnn_sdp,
}
GETTERS: dict[str, Callable[[], bool]] = {
    "flash": switches.flash_sdp_enabled,
    "efficient": switches.mem_efficient_sdp_enabled,
    "math": switches.math_sdp_enabled,
    "cudnn": switches.cudnn_sdp_enabled,
}
EVERY = frozenset(SETTERS)


def choose(
    kernel: Kernel, device: torch.device | str, *, dtype: torch.dtype = torch.float32, dropout: float = 0.0
) -> Change:
    """Allow one kernel, or all of them for "auto" and "flash_attention_2", which is not a kernel of torch.

    Args:
        kernel: The kernel.
        device: Device of the model.
        dtype: Dtype of the attention.
        dropout: The highest dropout of the attention.
    """
    before = allowed()
    wanted = frozenset({kernel}) & EVERY or EVERY
    if kernel == "flash_attention_2":
        check_flash_attention_2(device, dtype)
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
    return Change("attention_kernel", len(before ^ wanted), f"allowed: {', '.join(sorted(wanted))}")


def allowed() -> frozenset[str]:
    """Return the allowed kernels."""
    return frozenset(name for name, is_on in GETTERS.items() if is_on())


@contextmanager
def every_kernel() -> Iterator[None]:
    """Allow all kernels temporarily: the masks of speech do not work with the fastest one."""
    before = allowed()
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
    return NAMES.get(SDPBackend(number), "none")


def check_flash_attention_2(device: torch.device | str, dtype: torch.dtype) -> None:
    """Raise an error if the flash_attn package is missing or not supported."""
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
    for name, setter in SETTERS.items():
        setter(name in names)


def _try(device: torch.device, dtype: torch.dtype, dropout: float) -> None:
    """Run attention forward and backward as the GPT does; torch raises if no allowed kernel supports it."""
    query = torch.zeros(1, 1, 16, 64, device=device, dtype=dtype, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each kernel warns why it cannot run; the error is enough
        out = F.scaled_dot_product_attention(query, query, query, dropout_p=dropout, is_causal=True)
    torch.autograd.backward(out.sum())
