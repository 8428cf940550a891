"""The layers of coqui's GPT, taken apart once and run without transformers: a whole text at a time, or one code."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from utils.core.errors import SpeedupError
from utils.speech.kv_cache import STEP, Cache
from utils.speech.quantized import DTYPES, Linear, Precision, linear

if TYPE_CHECKING:
    from transformers.models.gpt2.modeling_gpt2 import GPT2Model


class Norm(NamedTuple):
    """A layer norm."""

    weight: Tensor
    bias: Tensor
    eps: float

    @classmethod
    def of(cls, norm: nn.Module, device: torch.device, dtype: torch.dtype = torch.float32) -> "Norm":
        """Copy torch's own."""
        if not isinstance(norm, nn.LayerNorm):
            raise SpeedupError(f"A {type(norm).__name__} stands where a LayerNorm should.", hint=PLAIN)
        weight, bias = (part.detach().to(device, dtype, copy=True) for part in (norm.weight, norm.bias))
        return cls(weight, bias, norm.eps)

    def __call__(self, rows: Tensor) -> Tensor:
        """Normalise rows."""
        return functional.layer_norm(rows, self.weight.shape, self.weight, self.bias, self.eps)


class Layer(NamedTuple):
    """One block of the GPT-2."""

    before: Norm
    mixing: Linear  # to queries, keys and values
    mixed: Linear
    between: Norm
    widening: Linear  # with the activation
    narrowing: Linear


PLAIN = "Load the model anew, without adapters and switches of training."


class Stack:
    """All blocks of a GPT-2 and the norm behind them.

    On a CPU everything between the products is fp32; on a GPU it is of the kind of the weights.

    Args:
        gpt: transformers' GPT2Model without positions of its own, as coqui builds it.
        precision: What the weights are stored in.
        device: Where to compute.
        consume: Whether each block is taken out of the GPT once it was copied.
    """

    def __init__(self, gpt: "GPT2Model", precision: Precision, device: torch.device, *, consume: bool) -> None:
        self.device = device
        self.dtype = torch.float32 if device.type == "cpu" else DTYPES[precision]
        self.layers = list(self._taken(gpt, precision, consume=consume))
        self.final = Norm.of(gpt.ln_f, device, self.dtype)
        self.dim = int(gpt.config.hidden_size)
        self.heads = int(gpt.config.num_attention_heads)

    def _taken(self, gpt: "GPT2Model", precision: Precision, *, consume: bool) -> Iterator[Layer]:
        blocks: Any = gpt.h
        for number in range(len(blocks)):
            block = blocks[number]
            yield Layer(
                Norm.of(block.ln_1, self.device, self.dtype),
                self._product(block.attn.c_attn, precision),
                self._product(block.attn.c_proj, precision),
                Norm.of(block.ln_2, self.device, self.dtype),
                self._product(block.mlp.c_fc, precision, gelu=True),
                self._product(block.mlp.c_proj, precision, behind_gelu=True),
            )
            if consume:
                blocks[number] = nn.Identity()

    def _product(
        self, source: nn.Module, precision: Precision, *, gelu: bool = False, behind_gelu: bool = False
    ) -> Linear:
        """Turn a Conv1D of transformers, whose weight is (inputs, outputs), into a product."""
        from transformers.pytorch_utils import Conv1D

        if type(source) is not Conv1D:
            raise SpeedupError(f"A {type(source).__name__} stands where a Conv1D should.", hint=PLAIN)
        weight, bias = source.weight.detach().to(self.device), source.bias.detach().to(self.device)
        return linear(weight.t(), bias, precision, gelu=gelu, behind_gelu=behind_gelu)

    def cache(self, lengths: list[int], room: int) -> Cache:
        """Return an empty cache for rows of these lengths, with room for at least some of what follows."""
        shape = (len(self.layers), self.heads, self.dim // self.heads)
        at_once = min(room, STEP) if self.device.type == "cpu" else room  # graphs of CUDA are made for one size
        return Cache(shape, lengths, at_once, self.dtype, self.device)

    def read(self, sequence: Tensor, kept: list[Tensor] | None = None, begun: int = 0) -> Tensor:
        """Return the hidden states of one whole sequence, or of what follows its beginning.

        Args:
            sequence: Its embeddings, of shape (length, dim), without the beginning.
            kept: Where keys and values go, of shape (2, 1, heads, begun + length, size) for each layer; None: nowhere.
            begun: Columns at the beginning that are kept already.
        """
        hidden = sequence.to(self.dtype)
        length = len(hidden)
        mask = torch.ones(length, begun + length, dtype=torch.bool, device=self.device).tril(begun) if begun else None
        for number, layer in enumerate(self.layers):
            mixed = layer.mixing(layer.before(hidden)).view(1, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            queries, keys, values = mixed.unbind()
            if kept:
                kept[number][:, :, :, begun:] = mixed[1:]
            if kept and begun:
                keys, values = kept[number].unbind()
            heard = functional.scaled_dot_product_attention(queries, keys, values, mask, is_causal=not begun)
            hidden = hidden + layer.mixed(heard.transpose(1, 2).reshape(length, self.dim))
            hidden = hidden + layer.narrowing(layer.widening(layer.between(hidden)))
        return self.final(hidden)

    def step(self, rows: Tensor, cache: Cache) -> Tensor:
        """Return the hidden states of one more column, of shape (rows, dim), and keep it in the cache."""
        cache.make_room()
        end = cache.end

        def hold(kept: Tensor, new: Tensor) -> Tensor:
            kept.narrow(3, end, 1).copy_(new)
            return kept.narrow(3, 0, end + 1)

        hidden = self._column(rows, cache.layers, hold, None if cache.mask is None else cache.mask[..., : end + 1])
        cache.end = end + 1
        return hidden

    def fixed_step(self, rows: Tensor, layers: list[Tensor], column: Tensor, mask: Tensor) -> Tensor:
        """Do the same with shapes that never change, as a graph of CUDA needs it: the mask hides what is still free.

        Args:
            rows: Embeddings of the new column.
            layers: What is kept.
            column: Number of the new column, of shape (1,).
            mask: Of shape (rows, 1, 1, capacity).
        """
        return self._column(rows, layers, lambda kept, new: kept.index_copy_(3, column, new), mask)

    def _column(
        self, rows: Tensor, layers: list[Tensor], hold: Callable[[Tensor, Tensor], Tensor], mask: Tensor | None
    ) -> Tensor:
        hidden, count = rows.to(self.dtype), len(rows)
        for layer, kept in zip(self.layers, layers, strict=True):
            mixed = layer.mixing(layer.before(hidden)).view(count, 3, self.heads, 1, -1).transpose(0, 1)
            keys, values = hold(kept, mixed[1:]).unbind()
            heard = functional.scaled_dot_product_attention(mixed[0], keys, values, attn_mask=mask)
            hidden = hidden + layer.mixed(heard.view(count, self.dim))
            hidden = hidden + layer.narrowing(layer.widening(layer.between(hidden)))
        return self.final(hidden)
