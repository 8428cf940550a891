"""The modules of coqui-tts that the switches of training look for, and fused attention for two of them.

coqui computes the attention of the conditioning encoder and the perceiver explicitly: a float32 softmax over all pairs
of frames, kept for the backward pass, and a convolution of width one per projection. Here the same weights go through
``scaled_dot_product_attention`` and plain matrix products, with the channels last in memory from the first block to
the perceiver.

Only the class of a module changes, never its weights or their names, so copies and checkpoints are unaffected, and
restoring the class restores the original computation.
"""

import torch.nn.functional as F  # noqa: N812 - as torch's documents have it
from torch import Tensor, nn
from TTS.tts.layers.tortoise.arch_utils import AttentionBlock
from TTS.tts.layers.xtts.gpt import GPT
from TTS.tts.layers.xtts.perceiver_encoder import Attend, Attention

from utils.xtts.facts import ModelSwitchError

__all__ = ["GPT", "Attend", "Attention", "AttentionBlock"]  # everything else takes coqui's classes from here


class FusedAttentionBlock(AttentionBlock):  # type: ignore[misc]  # coqui has no types
    """A block of the conditioning encoder, fused."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the same as coqui's block without a mask; the memory layout is [batch, frames, channels]."""
        # As an image of height one, the norm keeps the channels last; otherwise it would copy them.
        normed = self.norm(x.unsqueeze(2)).squeeze(2).mT.contiguous()
        mixed = F.linear(self._attend(normed), self.proj_out.weight.squeeze(-1), self.proj_out.bias)
        residual = x.mT if self.tortoise_norm else normed
        return (residual + mixed).mT

    def _attend(self, frames: Tensor) -> Tensor:
        triples = F.linear(frames, self.qkv.weight.squeeze(-1), self.qkv.bias)
        batch, length, _ = triples.shape
        query, key, value = triples.view(batch, length, self.num_heads, 3, -1).unbind(3)
        heads = F.scaled_dot_product_attention(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2))
        return heads.transpose(1, 2).flatten(2)


class FusedAttend(Attend):  # type: ignore[misc]
    """The attention of the perceiver, fused."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        attn_mask = None if mask is None else mask[:, None, None, :]
        return F.scaled_dot_product_attention(q, k, v, attn_mask, dropout_p=self.dropout if self.training else 0.0)


CONDITIONING = ("conditioning_encoder", "conditioning_perceiver")  # the parts of the GPT that encode a voice
FUSED: dict[type[nn.Module], type[nn.Module]] = {AttentionBlock: FusedAttentionBlock, Attend: FusedAttend}
PLAIN = {fused: plain for plain, fused in FUSED.items()}


def gpt2_layers(gpt: nn.Module) -> list[nn.Module]:
    return list(gpt.get_submodule("gpt.h").children())


def fuse(part: nn.Module) -> int:
    """Fuse every attention in a part of the model; return how many were changed."""
    return _set_class(part, FUSED)


def unfuse(part: nn.Module) -> int:
    """Restore the original attention in a part of the model; return how many were changed."""
    return _set_class(part, PLAIN)


def _set_class(part: nn.Module, new: dict[type[nn.Module], type[nn.Module]]) -> int:
    modules = [module for module in part.modules() if isinstance(module, tuple(FUSED))]
    for module in modules:
        if type(module) not in FUSED | PLAIN:
            raise ModelSwitchError("wrapped", type(module).__name__)
    changed = [module for module in modules if type(module) in new]
    for module in changed:
        module.__class__ = new[type(module)]
    return len(changed)


def count_fused(part: nn.Module) -> tuple[int, int]:
    """Return how many attentions a part has, and how many of them are fused."""
    kinds = [type(module) for module in part.modules() if isinstance(module, tuple(FUSED))]
    return len(kinds), sum(kind in PLAIN for kind in kinds)


def head_width(part: nn.Module) -> int:
    """Return the channels per attention head of a part."""
    for module in part.modules():
        if isinstance(module, AttentionBlock):
            return int(module.channels // module.num_heads)
        if isinstance(module, Attention):
            return int(module.to_q.out_features // module.heads)
    raise ModelSwitchError("no_attention", type(part).__name__)
