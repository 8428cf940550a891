"""Dropout: its probability, and a faster form for CPUs that uses one random byte per element.

On a CPU, torch draws a full random number per element. Here eight bytes are drawn at once. The probability is rounded
to a multiple of 1/256, and the kept values are scaled by the rounded probability, so that the expectation stays the
same. GPUs have fused kernels.
"""

import math
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from utils.core.facts import Optimization
from utils.training.facts import LayersChanged

VALUES = 256  # of a byte
BYTE_DROPOUT = "byte_dropout"  # implementation of attention, as transformers knows it


def set_dropout(gpt: nn.Module, share: float) -> Optimization:
    """Set the dropout probability of the GPT-2, including its attention; coqui keeps the default of transformers."""
    layers = _dropouts(gpt)
    changed = sum(layer.p != share for layer in layers)
    for layer in layers:
        layer.p = share
    return Optimization("dropout", changed, LayersChanged(f"{share:g} in", len(layers)))


def use_byte_dropout(gpt: nn.Module) -> Optimization:
    """Replace every dropout of the GPT-2, including that of its fused attention."""
    layers = [layer for layer in _dropouts(gpt) if layer.p]
    for layer in layers:
        layer.__class__ = ByteDropout
    if layers:
        AttentionInterface.register(BYTE_DROPOUT, attend)
        gpt2: Any = gpt.get_submodule("gpt")
        gpt2.set_attn_implementation(BYTE_DROPOUT)
    return Optimization("enable_byte_dropout", len(layers), LayersChanged("random bytes in", len(layers)))


class ByteDropout(nn.Dropout):
    """Dropout with one random byte per element."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  # as torch names it
        return drop(input, self.p) if self.training else input


def drop(numbers: Tensor, share: float) -> Tensor:
    """Drop a share of the elements and scale the others up; the mask comes from torch's generator."""
    limit = min(VALUES - 1, round(share * VALUES))
    size = numbers.numel()
    drawn = torch.randint(-(2**63), 2**63 - 1, (math.ceil(size / 8),), dtype=torch.int64)
    kept = (drawn.view(torch.uint8)[:size] >= limit).view(numbers.shape)
    return torch.where(kept, numbers * (VALUES / (VALUES - limit)), 0.0)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float,
    **options: Any,  # noqa: ANN401
) -> tuple[Tensor, None]:
    """Causal attention with byte dropout; without dropout, SDPA, whose own dropout takes twice as long on a CPU."""
    if not dropout or attention_mask is not None:
        return sdpa_attention_forward(module, query, key, value, attention_mask, dropout=dropout, **options)
    future = query.new_full((query.shape[2], key.shape[2]), -math.inf).triu(1)
    weights = drop((query @ key.mT * query.shape[3] ** -0.5 + future).softmax(-1), dropout)
    return (weights @ value).transpose(1, 2), None


def _dropouts(gpt: nn.Module) -> list[nn.Dropout]:
    return [module for module in gpt.get_submodule("gpt").modules() if isinstance(module, nn.Dropout)]
