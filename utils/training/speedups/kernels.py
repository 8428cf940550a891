"""Which of torch's attention kernels may run.

The choice is a setting of the whole process and holds for the backward pass too, where checkpointed layers choose
again. A kernel that this device, number format or dropout excludes is refused at once, by trying it.
"""

import importlib.util
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812 - as torch's documents have it
from torch.backends import cuda as switches  # these act on CPUs as well
from torch.nn.attention import SDPBackend

from utils.core.change import Change
from utils.core.errors import SpeedupError

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
    """Allow one kernel alone, or all of them.

    Args:
        kernel: One of them; "auto" allows all. "flash_attention_2" is no kernel of torch, so all are allowed beside it.
        device: Where the model computes.
        dtype: The number format that it computes in.
        dropout: The highest dropout of its attention.
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
    """Return the kernels that may run now."""
    return frozenset(name for name, is_on in GETTERS.items() if is_on())


@contextmanager
def every_kernel() -> Iterator[None]:
    """Allow all kernels for a while, as speaking needs them: its masks exclude the fastest one."""
    before = allowed()
    _allow(EVERY)
    try:
        yield
    finally:
        _allow(before)


def taken(device: torch.device | str, dtype: torch.dtype, width: int, *, dropout: float = 0.0, causal: bool) -> str:
    """Ask torch which kernel it takes now.

    Args:
        device: Where it computes.
        dtype: Number format of queries, keys and values.
        width: Channels of a head.
        dropout: Share of the weights that are dropped.
        causal: Each position sees only those before it.
    """
    query = torch.zeros(1, 1, 64, width, device=device, dtype=dtype, requires_grad=True)
    try:
        number = torch._fused_sdp_choice(query, query, query, None, dropout, causal)  # noqa: SLF001 - nothing else tells
    except RuntimeError:
        return "none"
    return NAMES.get(SDPBackend(number), "none")


def check_flash_attention_2(device: torch.device | str, dtype: torch.dtype) -> None:
    """Refuse the package flash_attn where it is missing or cannot work."""
    if importlib.util.find_spec("flash_attn") is None:
        raise SpeedupError(
            "attention_kernel: flash_attention_2 needs the package flash_attn, which is not installed.",
            hint="Install it with: pip install flash-attn --no-build-isolation, or choose auto.",
        )
    if torch.device(device).type != "cuda" or dtype not in {torch.float16, torch.bfloat16}:
        raise SpeedupError(
            f"attention_kernel: flash_attention_2 works on CUDA GPUs in 16 bits, not on {device} in {dtype}.",
            hint="Switch enable_mixed_precision on, or choose auto.",
        )


def _allow(names: frozenset[str]) -> None:
    for name, setter in SETTERS.items():
        setter(name in names)


def _try(device: torch.device, dtype: torch.dtype, dropout: float) -> None:
    """Attend forward and backward as the GPT does; torch raises where no allowed kernel can."""
    query = torch.zeros(1, 1, 16, 64, device=device, dtype=dtype, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each kernel says why it cannot; the error that follows is enough
        out = F.scaled_dot_product_attention(query, query, query, dropout_p=dropout, is_causal=True)
    torch.autograd.backward(out.sum())
