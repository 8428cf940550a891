"""Dropout on a CPU with a random byte for each number, eight of them drawn at once.

torch draws a number of its own for each, and its fused attention on a CPU knows no dropout and gives way to the form
that is written out. The share is rounded to a 256th, and what is kept is scaled by the rounded share, so that the
expectation stays. A GPU has fused kernels for both.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.gpt2.modeling_gpt2 import GPT2Attention

from utils.core.change import Change
from utils.core.errors import SpeedupError

VALUES = 256  # of a byte


def use_byte_dropout(gpt: nn.Module) -> Change:
    """Exchange every dropout of the GPT-2, those inside the attention too; weights stay where they are.

    Args:
        gpt: coqui's GPT, its dropout set already.
    """
    layers = [block.get_submodule("attn") for block in gpt.get_submodule("gpt.h").children()]
    for layer in layers:
        if type(layer) not in {GPT2Attention, DroppingAttention}:
            raise SpeedupError(
                f"enable_byte_dropout: {type(layer).__name__} is another attention.", hint="Switch it off."
            )
    changed = [module for module in gpt.get_submodule("gpt").modules() if type(module) is nn.Dropout]
    for module in changed:
        module.__class__ = ByteDropout
    for layer in layers:
        layer.__class__ = DroppingAttention
    return Change("enable_byte_dropout", len(changed), f"{len(changed)} places in {len(layers)} layers")


class ByteDropout(nn.Dropout):
    """Dropout with a byte a number."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # as torch names it
        """Drop while training."""
        limit = threshold(self.p) if self.training else 0
        return dropped(input, limit) if limit else input


class DroppingAttention(GPT2Attention):
    """The GPT-2's attention, with dropout of its weights clip by clip, so that they stay in the cache."""

    def forward(self, hidden_states: Any, *others: Any, **named: Any) -> Any:  # noqa: ANN401
        """Attend; whatever is not plain training goes transformers' way."""
        limit = threshold(self.attn_dropout.p) if self.training else 0
        asked = [*others, *(named.get(name) for name in ("past_key_values", "attention_mask", "encoder_hidden_states"))]
        if not limit or hidden_states.dtype != torch.float32 or any(part is not None for part in asked):
            return super().forward(hidden_states, *others, **named)
        parts = self.c_attn(hidden_states).unflatten(2, (3, self.num_heads, self.head_dim)).unbind(2)
        if parts[0].dtype != torch.float32:  # autocast
            return super().forward(hidden_states, *others, **named)
        query, key, value = (part.transpose(1, 2) for part in parts)
        heads = attended(query, key, value, limit)
        return self.resid_dropout(self.c_proj(heads.transpose(1, 2).flatten(2))), None


def threshold(share: float) -> int:
    """Return how many of the 256 values of a byte mean that a number is dropped."""
    return min(VALUES - 1, round(share * VALUES))


def dropped(numbers: Tensor, limit: int) -> Tensor:
    """Drop numbers whose byte is below a limit, and scale the others up."""
    result: Tensor = _Drop.apply(numbers, limit)  # type: ignore[no-untyped-call]
    return result


def attended(query: Tensor, key: Tensor, value: Tensor, limit: int) -> Tensor:
    """Attend causally and drop weights whose byte is below a limit; shapes are [clips, heads, positions, width]."""
    result: Tensor = _Attend.apply(query, key, value, limit)  # type: ignore[no-untyped-call]
    return result


def kept(shape: torch.Size, limit: int) -> Tensor:
    """Draw what is kept, from torch's generator, so that a seed and a resume give the same."""
    size = math.prod(shape)
    drawn = torch.randint(-(2**63), 2**63 - 1, (math.ceil(size / 8),), dtype=torch.int64)
    return (drawn.view(torch.uint8)[:size] >= limit).view(shape)


class _Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, numbers: Tensor, limit: int) -> Tensor:  # noqa: ANN401
        mask = kept(numbers.shape, limit)
        ctx.save_for_backward(mask)
        ctx.scale = VALUES / (VALUES - limit)
        return torch.where(mask, numbers * ctx.scale, 0.0)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:  # noqa: ANN401
        (mask,) = ctx.saved_tensors
        return torch.where(mask, gradients[0] * ctx.scale, 0.0), None


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, limit: int) -> Tensor:  # noqa: ANN401
        clips, heads, length, width = query.shape
        future = query.new_full((length, length), -math.inf).triu(1)
        weights = query.new_empty(clips, heads, length, length)
        mask = kept(weights.shape, limit)
        out = torch.empty_like(value, memory_format=torch.contiguous_format)
        for clip in range(clips):
            scores = torch.baddbmm(future, query[clip], key[clip].mT, alpha=width**-0.5)
            torch.softmax(scores, -1, out=weights[clip])
            torch.bmm(torch.mul(weights[clip], mask[clip], out=scores), value[clip], out=out[clip])
        ctx.save_for_backward(query, key, value, weights, mask)
        ctx.kept = VALUES / (VALUES - limit)
        return out.mul_(ctx.kept)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:  # noqa: ANN401
        query, key, value, weights, mask = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        found = tuple(torch.empty_like(part, memory_format=torch.contiguous_format) for part in (query, key, value))
        for clip in range(query.shape[0]):
            part = torch.mul(weights[clip], mask[clip])
            torch.bmm(part.mT, gradient[clip], out=found[2][clip])
            torch.bmm(gradient[clip], value[clip].mT, out=part).mul_(mask[clip])
            part = torch._softmax_backward_data(part, weights[clip], -1, torch.float32)  # noqa: SLF001  # has no other name
            torch.bmm(part, key[clip], out=found[0][clip])
            torch.bmm(part.mT, query[clip], out=found[1][clip])
        scale = ctx.kept * query.shape[3] ** -0.5
        return found[0].mul_(scale), found[1].mul_(scale), found[2].mul_(ctx.kept), None
