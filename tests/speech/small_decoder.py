"""A small GPT of coqui's that ends its sentences, and texts for it."""

from collections.abc import Sequence
from typing import Any

import torch

from tests.training.small_gpt import STOP_AUDIO, small_gpt
from utils.speech.decoder import Request
from utils.speech.types import Sampling

TEXTS = ([5, 6, 7, 8, 9, 10, 11], [20, 21, 22], [40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52], [60])
GREEDY = Sampling(top_k=1)


def talking_gpt(layers: int = 2, *, end: float = 0.0, **changes: Any) -> Any:
    """Build it.

    Args:
        layers: Of the GPT.
        end: Is added to the score of the code that ends a sentence; 3: after some ten codes.
        changes: Are handed to coqui.
    """
    gpt = small_gpt(layers, **changes).eval()
    with torch.no_grad():
        for part in (gpt.text_embedding, gpt.mel_embedding):
            part.weight.mul_(0.05)  # coqui draws them so large that they drown what the layers add
        for block in gpt.gpt.h:
            for product in (block.attn.c_attn, block.mlp.c_fc):
                product.weight.mul_(5)
        gpt.mel_head.weight.mul_(3)
        gpt.mel_head.bias[STOP_AUDIO] = end
    return gpt


def prompt(seed: int = 0, dim: int = 64) -> torch.Tensor:
    """Return what a voice begins with."""
    return torch.randn(1, 32, dim, generator=torch.Generator().manual_seed(seed)) * 0.3


def asked(
    ids: Sequence[int] = TEXTS[0], sampling: Sampling = GREEDY, *, seed: int = 0, limit: int = 20, voice: int = 0
) -> Request:
    """Return a request."""
    return Request(ids, prompt(voice), sampling, seed, limit)
