"""Dropout: its probability, and a faster form for CPUs that uses one random byte per element.

On a CPU, torch draws a full random number per element, and its fused attention does not support dropout. Here eight
bytes are drawn at once. The probability is rounded to a multiple of 1/256, and the kept values are scaled by the
rounded probability, so that the expectation stays the same. GPUs have fused kernels for both.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

from utils.core.errors import SpeedupError
from utils.core.events import Change

VALUES = 256  # of a byte


def set_dropout(gpt: nn.Module, share: float) -> Change:
    """Set the dropout probability of the GPT-2, including its attention; coqui keeps the default of transformers."""
    layers = [module for module in gpt.get_submodule("gpt").modules() if isinstance(module, nn.Dropout)]
    changed = sum(layer.p != share for layer in layers)
    for layer in layers:
        layer.p = share
    return Change("dropout", changed, f"{share:g} in {len(layers)} layers")


def use_byte_dropout(gpt: nn.Module) -> Change:
    """Replace every dropout of the GPT-2, including its attention. Call ``set_dropout`` first."""
    layers = [block.get_submodule("attn") for block in gpt.get_submodule("gpt.h").children()]
    for layer in layers:
        if type(layer) not in {GPT2Attention, DroppingAttention}:
            raise SpeedupError(
                f"enable_byte_dropout: {type(layer).__name__} is not supported.", hint="Turn off enable_byte_dropout."
            )
    changed = [module for module in gpt.get_submodule("gpt").modules() if type(module) is nn.Dropout]
    for module in changed:
        module.__class__ = ByteDropout
    for layer in layers:
        layer.__class__ = DroppingAttention
    return Change("enable_byte_dropout", len(changed), f"{len(changed)} dropouts in {len(layers)} layers")


class ByteDropout(nn.Dropout):
    """Dropout with one random byte per element."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # as torch names it
        limit = threshold(self.p) if self.training else 0
        return dropped(input, limit) if limit else input


class DroppingAttention(GPT2Attention):
    """Attention of the GPT-2 that applies dropout clip by clip, so that the weights stay in the CPU cache."""

    def forward(self, hidden_states: Any, *others: Any, **named: Any) -> Any:  # noqa: ANN401
        """Attend; anything but plain training falls back to transformers."""
        limit = threshold(self.attn_dropout.p) if self.training else 0
        names = ("past_key_values", "attention_mask", "encoder_hidden_states")
        is_plain = all(part is None for part in (*others, *map(named.get, names)))
        if not limit or hidden_states.dtype != torch.float32 or not is_plain:
            return super().forward(hidden_states, *others, **named)
        parts = self.c_attn(hidden_states).unflatten(2, (3, self.num_heads, self.head_dim)).unbind(2)
        if parts[0].dtype != torch.float32:  # autocast
            return super().forward(hidden_states, *others, **named)
        query, key, value = (part.transpose(1, 2) for part in parts)
        heads = attended(query, key, value, limit)
        return self.resid_dropout(self.c_proj(heads.transpose(1, 2).flatten(2))), None


def threshold(share: float) -> int:
    """Return how many of the 256 values of a byte drop an element."""
    return min(VALUES - 1, round(share * VALUES))


def keep_mask(shape: torch.Size, limit: int) -> Tensor:
    """Draw the mask of kept elements from torch's generator, so that it is reproducible."""
    size = math.prod(shape)
    drawn = torch.randint(-(2**63), 2**63 - 1, (math.ceil(size / 8),), dtype=torch.int64)
    return (drawn.view(torch.uint8)[:size] >= limit).view(shape)


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, numbers: Tensor, limit: int) -> Tensor:  # noqa: ANN401
        mask = keep_mask(numbers.shape, limit)
        ctx.save_for_backward(mask)
        ctx.scale = VALUES / (VALUES - limit)
        return torch.where(mask, numbers * ctx.scale, 0.0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        (mask,) = ctx.saved_tensors
        return torch.where(mask, gradients[0] * ctx.scale, 0.0), None


def dropped(numbers: Tensor, limit: int) -> Tensor:
    """Drop elements whose byte is below a limit, and scale the others up."""
    return _Drop.apply(numbers, limit)  # type: ignore[no-untyped-call, no-any-return]


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, limit: int) -> Tensor:  # noqa: ANN401
        clips, heads, length, width = query.shape
        future = query.new_full((length, length), -math.inf).triu(1)
        weights = query.new_empty(clips, heads, length, length)
        mask = keep_mask(weights.shape, limit)
        out = torch.empty_like(value, memory_format=torch.contiguous_format)
        for clip in range(clips):
            scores = torch.baddbmm(future, query[clip], key[clip].mT, alpha=width**-0.5)
            torch.softmax(scores, -1, out=weights[clip])
            torch.bmm(torch.mul(weights[clip], mask[clip], out=scores), value[clip], out=out[clip])
        ctx.save_for_backward(query, key, value, weights, mask)
        ctx.scale = VALUES / (VALUES - limit)
        return out.mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:  # noqa: ANN401
        query, key, value, weights, mask = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        to_query, to_key, to_value = (
            torch.empty_like(part, memory_format=torch.contiguous_format) for part in (query, key, value)
        )
        for clip in range(query.shape[0]):
            part = torch.mul(weights[clip], mask[clip])
            torch.bmm(part.mT, gradient[clip], out=to_value[clip])
            torch.bmm(gradient[clip], value[clip].mT, out=part).mul_(mask[clip])
            part = torch._softmax_backward_data(part, weights[clip], -1, torch.float32)  # noqa: SLF001  # no public name
            torch.bmm(part, key[clip], out=to_query[clip])
            torch.bmm(part.mT, query[clip], out=to_key[clip])
        scale = ctx.scale * query.shape[3] ** -0.5
        return to_query.mul_(scale), to_key.mul_(scale), to_value.mul_(ctx.scale), None


def attended(query: Tensor, key: Tensor, value: Tensor, limit: int) -> Tensor:
    """Causal attention with dropout of its weights; shapes are [clips, heads, positions, width]."""
    return _Attend.apply(query, key, value, limit)  # type: ignore[no-untyped-call, no-any-return]
