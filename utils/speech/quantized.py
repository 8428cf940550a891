"""Linear layers in several precisions: full, half, and int8.

A decoding step multiplies few rows by large weights, so its speed is that of reading the weights from memory. Each
class takes rows and returns rows of the same format. Every row is treated by itself: what one sentence gets does not
depend on its neighbors in the batch.
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
ENGINES = ("x86", "fbgemm", "onednn")  # of torch, the fastest first; each is for its own kind of processor
EXPECTED_ROWS = 64  # for oneDNN: one row is a tenth slower than with 1, eight are twice as fast
SMALLEST = 1e-12  # scale of a weight or a row of zeros


class Int8Range(NamedTuple):
    """The range of the int8 values of a row after it was scaled.

    Attributes:
        low: The lower end; the upper is 1. There are 255 steps between, and zero is on a step.
        deepest: How far below zero a row can reach, where low is nearer to zero than the upper end.
    """

    low: float
    deepest: float


SYMMETRIC = Int8Range(-128 / 127, math.inf)
AFTER_GELU = Int8Range(-28 / 227, 0.1701)  # GELU never goes below -0.17: the steps of a loud row are nearly halved


def linear(
    weight: Tensor, bias: Tensor, precision: Precision, *, gelu: bool = False, after_gelu: bool = False
) -> Linear:
    """Prepare a linear layer on the device of its weight.

    Args:
        weight: Weight of shape (outputs, inputs) in any format; it is copied.
        bias: One number per output.
        precision: Format of the weight.
        gelu: Apply GPT-2's activation.
        after_gelu: Whether the rows come from that activation, which makes their int8 steps finer.
    """
    weight, bias = weight.detach(), bias.detach().clone()
    if weight.device.type != "cpu":
        return PlainLinear(weight, bias, DTYPES[precision], gelu=gelu)
    if precision == "int8":
        return Int8Linear(weight, bias, AFTER_GELU if after_gelu else SYMMETRIC, gelu=gelu)
    if can_pack(precision):
        return PackedLinear(weight, bias, DTYPES[precision], gelu=gelu)
    return PlainLinear(weight, bias, torch.float32, gelu=gelu)


def int8_engine() -> str | None:
    """Return the torch engine that multiplies int8 on this processor."""
    return next((name for name in ENGINES if name in torch.backends.quantized.supported_engines), None)


def can_pack(precision: Precision) -> bool:
    """Return whether oneDNN can reorder weights of this format; bf16 needs a processor with bf16."""
    available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not available or not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        return False
    return precision == "fp32" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001  # as torch.compile


class PlainLinear:
    """A linear layer in one format throughout, as on a GPU."""

    def __init__(self, weight: Tensor, bias: Tensor, dtype: torch.dtype, *, gelu: bool) -> None:
        self.weight, self.bias, self.gelu = weight.to(dtype, copy=True), bias.to(dtype), gelu

    def __call__(self, rows: Tensor) -> Tensor:
        """Multiply rows of the weight's format."""
        product = functional.linear(rows, self.weight, self.bias)
        return functional.gelu(product, approximate="tanh") if self.gelu else product


class PackedLinear:
    """A linear layer by oneDNN, with the weight in the order that it reads fastest and the activation fused.

    30 layers of 1024 on two cores of a Zen 4, compared with coqui's products, which use one core for one row: fp32
    61 ms instead of 98 for one row and 63 instead of 213 for eight; bf16 29 and 34.
    """

    def __init__(self, weight: Tensor, bias: Tensor, dtype: torch.dtype, *, gelu: bool) -> None:
        self.dtype, self.bias = dtype, bias.to(dtype)
        reorder = torch.ops.mkldnn._reorder_linear_weight  # noqa: SLF001  # what torch.compile calls too
        self.weight = reorder(weight.to(dtype).contiguous(), EXPECTED_ROWS)
        self.product = torch.ops.mkldnn._linear_pointwise  # noqa: SLF001
        self.activation: tuple[str, list[float], str] = ("gelu", [], "tanh") if gelu else ("none", [], "")

    def __call__(self, rows: Tensor) -> Tensor:
        """Multiply rows of fp32."""
        product: Tensor = self.product(rows.to(self.dtype), self.weight, self.bias, *self.activation)
        return product.float()


class Int8Linear:
    """A linear layer in int8: the weight with a scale per output, the rows with a scale per row.

    torch's dynamic product takes one scale from the extremes of all its rows. So each row is first divided by its
    largest number, or by what it needs below zero, and a row with the ends of the range is added. The scale is then
    always the same, and a sentence sounds the same alone and in a batch.
    """

    def __init__(self, weight: Tensor, bias: Tensor, span: Int8Range, *, gelu: bool) -> None:
        self.weight, self.bias, self.gelu, self.range = _packed_int8(weight), bias.float(), gelu, span
        self.edges = torch.zeros(1, weight.shape[1])
        self.edges[0, :2] = torch.tensor([span.low, 1.0])
        self.reduce_range = not torch.cpu._is_vnni_supported()  # noqa: SLF001  # else sums of two products overflow

    def __call__(self, rows: Tensor) -> Tensor:
        """Multiply rows of fp32."""
        largest = torch.linalg.vector_norm(rows, math.inf, -1, keepdim=True).clamp_min_(SMALLEST)
        if self.range.low > -1:  # then a row may be quieter above zero than below it
            largest = torch.maximum(largest, largest.clamp_max(self.range.deepest) / -self.range.low)
        scaled = torch.cat((rows / largest, self.edges))
        product = torch.ops.quantized.linear_dynamic(scaled, self.weight, self.reduce_range)
        result = torch.addcmul(self.bias, product[: rows.shape[0]], largest)
        return functional.gelu(result, approximate="tanh") if self.gelu else result


def _packed_int8(weight: Tensor) -> Any:  # noqa: ANN401  # an object of torch's engine
    """Quantize a weight and let the engine pack it."""
    name, before = int8_engine(), torch.backends.quantized.engine
    if not name:
        raise SpeedupError("This build of torch does not support int8.", hint="Choose fp32.")
    weight = weight.float().contiguous()
    scales = weight.abs().amax(1).clamp_min(SMALLEST).double() / 127
    zeros = torch.zeros(len(scales), dtype=torch.long)
    quantized = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
    torch.backends.quantized.engine = name
    try:
        return torch.ops.quantized.linear_prepack(quantized, None)
    finally:
        torch.backends.quantized.engine = before
