"""The GPT-2 layers of coqui's GPT with a key-value cache, without transformers: a whole text at once, or one code.

A decoding step multiplies few rows by large weights, so its speed is that of reading the weights from memory: hence the
linear layers in several precisions. Every row is treated by itself, so what a sentence gets does not depend on its
neighbors in the batch. Each row of the cache begins at column 0 and has its own length, so rows can join and leave at
any time; what is behind the end of a row is masked.
"""

import contextlib
import math
import mmap
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from utils.speech.facts import ModelLayerError, PrecisionError
from utils.xtts.device import to_device

if TYPE_CHECKING:
    from transformers.models.gpt2.modeling_gpt2 import GPT2Model

Precision = Literal["fp32", "bf16", "fp16", "int8"]
DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16, "int8": torch.float32}
Linear = Callable[[Tensor], Tensor]  # takes rows and returns rows of the same format

ENGINES = ("x86", "fbgemm", "onednn")  # of torch, the fastest first; each is for its own kind of processor
EXPECTED_ROWS = 64  # for oneDNN: one row is a tenth slower than with 1, eight are twice as fast
SMALLEST = 1e-12  # scale of a weight or a row of zeros
MASKED = -1e30  # score of a masked column; an infinite one gives NaN where a whole block of columns is masked


# --- linear layers ---


class Int8Range(NamedTuple):
    """The range of the int8 values of a row after it was scaled; there are 255 steps in it, and zero is on a step."""

    low: float  # the lower end; the upper is 1
    deepest: float  # how far below zero a row can reach, where low is nearer to zero than the upper end


SYMMETRIC = Int8Range(-128 / 127, math.inf)
AFTER_GELU = Int8Range(-28 / 227, 0.1701)  # GELU never goes below -0.17: the steps of a loud row are nearly halved


def linear(
    weight: Tensor, bias: Tensor, precision: Precision, *, gelu: bool = False, after_gelu: bool = False
) -> Linear:
    """Prepare a linear layer on the device of its weight, of shape (outputs, inputs), which is copied.

    ``gelu`` applies GPT-2's activation. ``after_gelu``: the rows come from it, which makes their int8 steps finer.
    """
    weight = weight.detach()
    bias = bias.detach().clone()
    if weight.device.type != "cpu":
        return PlainLinear(weight, bias, DTYPES[precision], gelu=gelu)
    if precision == "int8":
        return Int8Linear(weight, bias, AFTER_GELU if after_gelu else SYMMETRIC, gelu=gelu)
    if can_pack(precision):
        return PackedLinear(weight, bias, DTYPES[precision], gelu=gelu)
    return PlainLinear(weight, bias, torch.float32, gelu=gelu)


def int8_engine() -> str | None:
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
        self.weight = weight.to(dtype, copy=True)
        self.bias = bias.to(dtype)
        self.gelu = gelu

    def __call__(self, rows: Tensor) -> Tensor:
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
        product: Tensor = self.product(rows.to(self.dtype), self.weight, self.bias, *self.activation)
        return product.float()


class Int8Linear:
    """A linear layer in int8: the weight with a scale per output, the rows with a scale per row.

    torch's dynamic product takes one scale from the extremes of all its rows. So each row is first divided by its
    largest number, or by what it needs below zero, and a row with the ends of the range is added. The scale is then
    always the same, and a sentence sounds the same alone and in a batch.
    """

    def __init__(self, weight: Tensor, bias: Tensor, span: Int8Range, *, gelu: bool) -> None:
        self.weight = _packed_int8(weight)
        self.bias = bias.float()
        self.gelu = gelu
        self.range = span
        self.edges = torch.zeros(1, weight.shape[1])
        self.edges[0, :2] = torch.tensor([span.low, 1.0])
        self.reduce_range = not torch.cpu._is_vnni_supported()  # noqa: SLF001  # else sums of two products overflow

    def __call__(self, rows: Tensor) -> Tensor:
        largest = torch.linalg.vector_norm(rows, math.inf, -1, keepdim=True).clamp_min_(SMALLEST)
        if self.range.low > -1:  # then a row may be quieter above zero than below it
            largest = torch.maximum(largest, largest.clamp_max(self.range.deepest) / -self.range.low)
        scaled = torch.cat((rows / largest, self.edges))
        product = torch.ops.quantized.linear_dynamic(scaled, self.weight, self.reduce_range)
        result = torch.addcmul(self.bias, product[: rows.shape[0]], largest)
        return functional.gelu(result, approximate="tanh") if self.gelu else result


def _packed_int8(weight: Tensor) -> Any:  # noqa: ANN401  # an object of torch's engine
    name = int8_engine()
    before = torch.backends.quantized.engine
    if not name:
        raise PrecisionError("int8", "torch_lacks")
    weight = weight.float().contiguous()
    scales = weight.abs().amax(1).clamp_min(SMALLEST).double() / 127
    zeros = torch.zeros(len(scales), dtype=torch.long)
    quantized = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
    torch.backends.quantized.engine = name
    try:
        return torch.ops.quantized.linear_prepack(quantized, None)
    finally:
        torch.backends.quantized.engine = before


# --- the cache ---


class KeyValueCache:
    """Keys and values of rows of different lengths.

    There is room for the longest that each row may become. On a processor, only what is written takes memory.

    Args:
        shape: Layers, heads and size of a head.
        dtype: Format of the keys and values.
        device: Where they are.
    """

    def __init__(self, shape: tuple[int, int, int], dtype: torch.dtype, device: torch.device) -> None:
        layers, heads, size = shape
        self.lengths: list[int] = []  # used columns of each row
        self.layers = [torch.zeros(2, 0, heads, 0, size, dtype=dtype, device=device) for _ in range(layers)]

    def add(self, lengths: list[int], columns: int) -> list[Tensor]:
        """Add rows, for which there is room, and return their first columns: (2, rows, heads, columns, size)."""
        first = len(self.lengths)
        self.lengths += lengths
        return [layer[:, first : len(self.lengths), :, :columns] for layer in self.layers]

    def reserve(self, rows: int, columns: int) -> None:
        """Make room for this many rows and columns; rows grow by half or more, as each growth copies the cache."""
        _, slots, heads, capacity, size = self.layers[0].shape
        if rows <= slots and columns <= capacity:
            return
        rows = slots if rows <= slots else max(rows, slots * 3 // 2)
        columns = max(columns, capacity)
        for number, layer in reversed(list(enumerate(self.layers))):  # without memory, the first stays small
            grown = _zeros((2, rows, heads, columns, size), layer.dtype, layer.device)
            for row, end in enumerate(self.lengths):
                grown[:, row, :, :end] = layer[:, row, :, :end]
            self.layers[number] = grown

    def extend(self) -> tuple[int, bool]:
        """Add a column to each row, and return how many the longest has, and whether all have as many."""
        is_even = min(self.lengths) == max(self.lengths)
        self.lengths = [length + 1 for length in self.lengths]
        return max(self.lengths), is_even

    def select(self, rows: list[int]) -> None:
        """Take these rows in this order, in place; a row may occur twice."""
        self.reserve(len(rows), 0)
        moves = [(source, target) for target, source in enumerate(rows) if source != target]
        self.lengths = [self.lengths[row] for row in rows]
        if moves:
            sources, targets = to_device(torch.tensor(moves), self.layers[0].device).unbind(1)
            for layer in self.layers:
                layer[:, targets, :, : max(self.lengths)] = layer[:, sources, :, : max(self.lengths)]


def _zeros(shape: tuple[int, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return zeros; a processor supplies their memory page by page, when something is written there."""
    size = math.prod(shape) * dtype.itemsize
    if device.type == "cpu" and size:
        with contextlib.suppress(OSError):  # without memory, the error is torch's, as everywhere else
            return torch.frombuffer(_pages(size), dtype=dtype).view(shape)
    return torch.zeros(shape, dtype=dtype, device=device)


def _pages(size: int) -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(-1, size)
    pages = mmap.mmap(-1, size, mmap.MAP_PRIVATE)  # of shared pages, reading would take memory too
    if sys.platform == "linux":
        with contextlib.suppress(OSError):  # a kernel without huge pages
            pages.madvise(mmap.MADV_NOHUGEPAGE)  # one would hold the free columns of several heads
    return pages


# --- the layers ---


class LayerNorm(NamedTuple):
    """A copy of torch's layer norm."""

    weight: Tensor
    bias: Tensor
    eps: float

    @classmethod
    def of(cls, norm: nn.Module, device: torch.device, dtype: torch.dtype = torch.float32) -> "LayerNorm":
        if not isinstance(norm, nn.LayerNorm):
            raise ModelLayerError("LayerNorm", type(norm).__name__)
        weight, bias = (part.detach().to(device, dtype, copy=True) for part in (norm.weight, norm.bias))
        return cls(weight, bias, norm.eps)

    def __call__(self, rows: Tensor) -> Tensor:
        return functional.layer_norm(rows, self.weight.shape, self.weight, self.bias, self.eps)


class Layer(NamedTuple):
    """One block of the GPT-2."""

    attention_norm: LayerNorm
    attention_in: Linear  # to queries, keys and values
    attention_out: Linear
    mlp_norm: LayerNorm
    mlp_in: Linear  # with the activation
    mlp_out: Linear

    def project(self, hidden: Tensor, heads: int) -> Tensor:
        """Return queries, keys and values, of shape (rows, 3, heads, size)."""
        return self.attention_in(self.attention_norm(hidden)).view(len(hidden), 3, heads, -1)

    def add(self, hidden: Tensor, attended: Tensor) -> Tensor:
        """Add what attention found to the hidden states, and what the products make of it."""
        hidden = hidden + self.attention_out(attended)
        return hidden + self.mlp_out(self.mlp_in(self.mlp_norm(hidden)))


class LayerStack:
    """All blocks of a GPT-2 (transformers' model without position embeddings, as coqui builds it) and its final norm.

    On a CPU everything between the products is fp32; on a GPU it has the format of the weights. ``consume`` removes
    each block from the GPT once it is copied.
    """

    def __init__(self, gpt: "GPT2Model", precision: Precision, device: torch.device, *, consume: bool) -> None:
        self.device = device
        self.dtype = torch.float32 if device.type == "cpu" else DTYPES[precision]
        self.final = LayerNorm.of(gpt.ln_f, device, self.dtype)
        self.dim = int(gpt.config.hidden_size)
        self.heads = int(gpt.config.num_attention_heads)
        self.layers: list[Layer] = []
        blocks: Any = gpt.h
        for number in range(len(blocks)):
            self.layers.append(self._layer(blocks[number], precision))
            if consume:
                blocks[number] = nn.Identity()

    def _layer(self, block: nn.Module, precision: Precision) -> Layer:
        parts: Any = block
        return Layer(
            LayerNorm.of(parts.ln_1, self.device, self.dtype),
            self._linear(parts.attn.c_attn, precision),
            self._linear(parts.attn.c_proj, precision),
            LayerNorm.of(parts.ln_2, self.device, self.dtype),
            self._linear(parts.mlp.c_fc, precision, gelu=True),
            self._linear(parts.mlp.c_proj, precision, after_gelu=True),
        )

    def _linear(
        self, source: nn.Module, precision: Precision, *, gelu: bool = False, after_gelu: bool = False
    ) -> Linear:
        """Convert a Conv1D of transformers, whose weight has the shape (inputs, outputs)."""
        from transformers.pytorch_utils import Conv1D

        if type(source) is not Conv1D:
            raise ModelLayerError("Conv1D", type(source).__name__)
        weight = source.weight.detach().to(self.device)
        bias = source.bias.detach().to(self.device)
        return linear(weight.t(), bias, precision, gelu=gelu, after_gelu=after_gelu)

    def cache(self) -> KeyValueCache:
        """Return an empty cache."""
        return KeyValueCache((len(self.layers), self.heads, self.dim // self.heads), self.dtype, self.device)

    # Long because a text may follow columns that the cache already has.
    def read(self, sequences: Tensor, layers: list[Tensor] | None = None, known: int = 0) -> Tensor:
        """Return the hidden states of sequences, one row after the other, or of what follows their ``known`` columns.

        ``sequences`` has the shape (rows, length, dim). ``layers`` receives keys and values, of shape (2, rows, heads,
        known + length, size) for each layer; those of the known columns, which the sequences lack, are there already.
        """
        rows, length, _ = sequences.shape
        hidden = sequences.to(self.dtype).flatten(0, 1)
        mask = torch.ones(length, known + length, dtype=torch.bool, device=self.device).tril(known) if known else None
        for number, layer in enumerate(self.layers):
            mixed = layer.project(hidden, self.heads).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            queries, keys, values = mixed.unbind()
            if layers:
                layers[number][:, :, :, known:] = mixed[1:]
            if layers and known:
                keys, values = layers[number].unbind()
            attended = functional.scaled_dot_product_attention(queries, keys, values, mask, is_causal=not known)
            hidden = layer.add(hidden, attended.transpose(1, 2).reshape(rows * length, self.dim))
        return self.final(hidden)

    def column(self, rows: Tensor, layers: list[Tensor], lengths: Tensor | None) -> Tensor:
        """Return the hidden states of one more column of each row, of shape (rows, dim), and add it to the cache.

        ``layers``: the part of the cache that is used. Without ``lengths`` every row gets its last column.
        """
        hidden = rows.to(self.dtype)
        count = len(rows)
        numbers = torch.arange(count, device=self.device)
        mask = None if lengths is None else self._mask(lengths, layers[0].shape[3])
        for layer, cached in zip(self.layers, layers, strict=True):
            mixed = layer.project(hidden, self.heads).unsqueeze(3).transpose(0, 1)
            if lengths is None:
                cached[:, :, :, -1:] = mixed[1:]
            else:
                cached[:, numbers, :, lengths] = mixed[1:, :, :, 0].transpose(0, 1)
            keys, values = cached.unbind()
            attended = functional.scaled_dot_product_attention(mixed[0], keys, values, attn_mask=mask)
            hidden = layer.add(hidden, attended.view(count, self.dim))
        return self.final(hidden)

    def _mask(self, lengths: Tensor, columns: int) -> Tensor:
        """Return what is added to the scores of each row: very little where a column is behind its newest one."""
        behind = torch.arange(columns, device=self.device) > lengths[:, None]
        mask = torch.zeros(behind.shape, dtype=self.dtype, device=self.device)
        return mask.masked_fill_(behind, max(MASKED, torch.finfo(self.dtype).min / 2))[:, None, None]
