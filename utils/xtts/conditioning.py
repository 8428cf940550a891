"""Fused attention for the parts of XTTS that listen to the reference: the conditioning encoder and the perceiver.

coqui writes this attention out: a softmax over all pairs of frames in float32, kept for the backward pass, and a
convolution of width one for each matrix. Here the same weights go through ``scaled_dot_product_attention`` and plain
matrix products, with the channels side by side in memory from the first block to the perceiver.

Only the class of a module changes, never its weights or their names. So copies, checkpoints and other processes see
what they always saw, and the written-out form comes back by giving the class back.
"""

import torch.nn.functional as F  # noqa: N812 - as torch's documents have it
from torch import Tensor, nn

from utils.core.errors import SpeedupError
from utils.xtts.modules import Attend, Attention, AttentionBlock


class FusedAttentionBlock(AttentionBlock):  # type: ignore[misc]  # coqui has no types
    """A block of the conditioning encoder, fused."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return what coqui's block returns; its memory lies as [batch, frames, channels]."""
        if mask is not None or self.relative_pos_embeddings is not None:
            return super().forward(x, mask)  # type: ignore[no-any-return]
        sound = x.flatten(2)
        # As an image of height one the norm leaves the channels side by side; else it copies them apart, and we back.
        normed = self.norm(sound.unsqueeze(2)).squeeze(2).mT.contiguous()  # [batch, frames, channels]
        mixed = F.linear(self._attended(normed), self.proj_out.weight.squeeze(-1), self.proj_out.bias)
        kept = sound.mT if self.tortoise_norm else normed
        return (kept + mixed).mT.reshape(x.shape) if x.ndim != 3 else (kept + mixed).mT

    def _attended(self, frames: Tensor) -> Tensor:
        triples = F.linear(frames, self.qkv.weight.squeeze(-1), self.qkv.bias)
        batch, length, _ = triples.shape
        query, key, value = triples.view(batch, length, self.num_heads, 3, -1).unbind(3)
        heads = F.scaled_dot_product_attention(query.transpose(1, 2), key.transpose(1, 2), value.transpose(1, 2))
        return heads.transpose(1, 2).flatten(2)


class FusedAttend(Attend):  # type: ignore[misc]
    """The attention of the perceiver, fused."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return what coqui's module returns."""
        if self.causal or k.ndim == 3:
            return super().forward(q, k, v, mask)  # type: ignore[no-any-return]
        seen = None if mask is None else mask[:, None, None, :]
        return F.scaled_dot_product_attention(q, k, v, seen, dropout_p=self.dropout if self.training else 0.0)


FUSED: dict[type[nn.Module], type[nn.Module]] = {AttentionBlock: FusedAttentionBlock, Attend: FusedAttend}


def fuse(part: nn.Module) -> int:
    """Fuse every attention in a part of the model; return how many were written out before."""
    return _give_class(part, FUSED)


def unfuse(part: nn.Module) -> int:
    """Give every attention in a part of the model its written-out form back; return how many were fused."""
    return _give_class(part, {fused: plain for plain, fused in FUSED.items()})


def count_fused(part: nn.Module) -> tuple[int, int]:
    """Return how many attentions a part holds, and how many of them are fused."""
    kinds = [type(module) for module in part.modules() if isinstance(module, tuple(FUSED))]
    return len(kinds), sum(kind in FUSED.values() for kind in kinds)


def head_width(part: nn.Module) -> int:
    """Return how many channels a head of a part's attention has."""
    for module in part.modules():
        if isinstance(module, AttentionBlock):
            return int(module.channels // module.num_heads)
        if isinstance(module, Attention):
            return int(module.to_q.out_features // module.heads)
    raise SpeedupError(f"{type(part).__name__} has no attention that is known here.", hint="Use an XTTS v2 model.")


def _give_class(part: nn.Module, new: dict[type[nn.Module], type[nn.Module]]) -> int:
    found = [module for module in part.modules() if isinstance(module, tuple(FUSED))]
    known = {*FUSED, *FUSED.values()}
    for module in found:
        if type(module) not in known:
            raise SpeedupError(
                f"enable_sdpa: {type(module).__name__} is another class than coqui's.",
                hint="Switch the attention before the model is sharded or wrapped.",
            )
    changed = [module for module in found if type(module) in new]
    for module in changed:
        module.__class__ = new[type(module)]
    return len(changed)
