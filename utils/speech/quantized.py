"""The products of a layer in several precisions: full, half, and whole numbers of eight bits.

A decoding step multiplies few rows by large weights, so what counts is how fast the weights come out of memory. Each
class here takes rows and gives rows of the same kind of number back; how its weights are stored is its own business.
Every row is treated by itself: what one sentence gets does not depend on its neighbours in the batch.
"""

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from utils.core.errors import SpeedupError

Precision = Literal["fp32", "bf16", "fp16", "int8"]
Linear = Callable[[Tensor], Tensor]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "int8": torch.float32}
ENGINES = ("x86", "fbgemm", "onednn")  # of torch, the fastest first; each multiplies bytes on its own kind of processor
ROWS = 64  # that oneDNN is told to expect: one row is a tenth slower than with 1, eight are twice as fast
SMALLEST = 1e-12  # scale of a weight or a row of zeros


class Span(NamedTuple):
    """What the bytes of a row reach from and to, once it was divided such that all of it lies between.

    Attributes:
        low: The lower end; the upper is 1. There are 255 steps between, and zero is on a step.
        deepest: How far below zero a row can reach at most, where low is nearer to zero than the upper end.
    """

    low: float
    deepest: float


AROUND_ZERO = Span(-128 / 127, math.inf)
AFTER_GELU = Span(-28 / 227, 0.1701)  # GELU gives nothing below -0.17: steps of a loud row are nearly halved


def linear(
    weight: Tensor, bias: Tensor, precision: Precision, *, gelu: bool = False, after_gelu: bool = False
) -> Linear:
    """Prepare the product with a weight of shape (outputs, inputs) where it lies.

    Args:
        weight: In any kind of number. It is copied and can be let go of afterwards.
        bias: One for each output.
        precision: What the weight is stored in.
        gelu: Whether GPT-2's activation follows.
        after_gelu: Whether the rows come from it, which makes their bytes finer.
    """
    weight, bias = weight.detach(), bias.detach().clone()
    if weight.device.type != "cpu":
        return Plain(weight, bias, DTYPES[precision], gelu=gelu)
    if precision == "int8":
        return Bytes(weight, bias, AFTER_GELU if after_gelu else AROUND_ZERO, gelu=gelu)
    if can_pack(precision):
        return Packed(weight, bias, DTYPES[precision], gelu=gelu)
    return Plain(weight, bias, torch.float32, gelu=gelu)


def engine() -> str | None:
    """Return which of torch's engines multiplies bytes here."""
    return next((name for name in ENGINES if name in torch.backends.quantized.supported_engines), None)


def can_pack(precision: Precision) -> bool:
    """Tell whether oneDNN takes weights of this kind in its own order; bf16 needs a processor that knows it."""
    known = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not known or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    return precision == "fp32" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001  # as torch.compile


class Plain:
    """A product in one kind of number throughout, as on a GPU."""

    def __init__(self, weight: Tensor, bias: Tensor, dtype: torch.dtype, *, gelu: bool) -> None:
        self.weight, self.bias, self.gelu = weight.to(dtype, copy=True), bias.to(dtype), gelu

    def __call__(self, rows: Tensor) -> Tensor:
        """Multiply rows of the weight's own kind."""
        made = functional.linear(rows, self.weight, self.bias)
        return functional.gelu(made, approximate="tanh") if self.gelu else made


class Packed:
    """A product by oneDNN with a weight in the order that it reads fastest, and the activation in the same pass.

    30 layers of 1024 on two cores of a Zen 4, beside the product that coqui makes of one row, which runs on one core:
    fp32 61 ms instead of 98 for one row and 63 instead of 213 for eight; bf16 29 and 34.
    """

    def __init__(self, weight: Tensor, bias: Tensor, dtype: torch.dtype, *, gelu: bool) -> None:
        self.dtype, self.bias = dtype, bias.to(dtype)
        order = torch.ops.mkldnn._reorder_linear_weight  # noqa: SLF001  # what torch.compile calls too
        self.weight = order(weight.to(dtype).contiguous(), ROWS)
        self.product = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001
        self.after: tuple[str, list[float], str] = ("gelu", [], "tanh") if gelu else ("none", [], "")

    def __call__(self, rows: Tensor) -> Tensor:
        """Multiply rows of fp32."""
        made: Tensor = self.product(rows.to(self.dtype), self.weight, self.bias, *self.after)
        return made.float()


class Bytes:
    """A product of bytes: the weight with a scale for each output, the rows with a scale for each row.

    torch's dynamic product takes one scale from the largest and smallest number of all its rows. So each row is divided
    first by its largest number, or by what it needs below zero, and one more row with the ends of the range is added:
    the scale is always the same, and a sentence is said alike alone and in a batch, and before and after a loud
    neighbour.
    """

    def __init__(self, weight: Tensor, bias: Tensor, span: Span, *, gelu: bool) -> None:
        self.weight, self.bias, self.gelu, self.span = _packed_bytes(weight), bias.float(), gelu, span
        self.edges = torch.zeros(1, weight.shape[1])
        self.edges[0, :2] = torch.tensor([span.low, 1.0])
        self.reduce_range = not torch.cpu._is_vnni_supported()  # noqa: SLF001  # else sums of two products overflow

    def __call__(self, rows: Tensor) -> Tensor:
        """Multiply rows of fp32."""
        largest = torch.linalg.vector_norm(rows, math.inf, -1, keepdim=True).clamp_min_(SMALLEST)
        if self.span.low > -1:  # then a row may be quieter above zero than below it
            largest = torch.maximum(largest, largest.clamp_max(self.span.deepest) / -self.span.low)
        scaled = torch.cat((rows / largest, self.edges))
        product = torch.ops.quantized.linear_dynamic(scaled, self.weight, self.reduce_range)
        made = torch.addcmul(self.bias, product[: rows.shape[0]], largest)
        return functional.gelu(made, approximate="tanh") if self.gelu else made


def _packed_bytes(weight: Tensor) -> Any:  # noqa: ANN401  # an object of torch's engine
    """Round a weight to bytes and hand it to the engine, in the order that it reads fastest."""
    name, before = engine(), torch.backends.quantized.engine
    if not name:
        raise SpeedupError("This build of torch has no products of int8.", hint="Choose fp32.")
    weight = weight.float().contiguous()
    scales = weight.abs().amax(1).clamp_min(SMALLEST).double() / 127
    zeros = torch.zeros(len(scales), dtype=torch.long)
    rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
    torch.backends.quantized.engine = name
    try:
        return torch.ops.quantized.linear_prepack(rounded, None)
    finally:
        torch.backends.quantized.engine = before
