"""A small coqui GPT that ends its sentences, sentences for it, and coqui's own generation to compare with."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from tests.training.small_gpt import STOP_AUDIO, small_gpt
from utils.config import SpeechConfig
from utils.speech.types import Sentence
from utils.xtts.model import quiet_transformers
from utils.xtts.tokenizer import TokenizedText

TEXTS = ([5, 6, 7, 8, 9, 10, 11], [20, 21, 22], [40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52], [60])
GREEDY = SpeechConfig(top_k=1)
SAMPLED = SpeechConfig(temperature=1.0, repetition_penalty=2.0)


def talking_gpt(layers: int = 2, *, end: float = 0.0, **changes: Any) -> Any:
    """Build a GPT; ``end`` is added to the score of the stop code: with 3 a sentence has about ten codes."""
    gpt = small_gpt(layers, **changes).eval()
    with torch.no_grad():
        for part in (gpt.text_embedding, gpt.mel_embedding):
            part.weight.mul_(0.05)  # coqui's are so large that they drown what the layers add
        for block in gpt.gpt.h:
            for product in (block.attn.c_attn, block.mlp.c_fc):
                product.weight.mul_(5)
        gpt.mel_head.weight.mul_(3)
        gpt.mel_head.bias[STOP_AUDIO] = end
    return gpt


def prompt(seed: int = 0, dim: int = 64) -> torch.Tensor:
    return torch.randn(1, 32, dim, generator=torch.Generator().manual_seed(seed)) * 0.3


def sentence(ids: Sequence[int] = TEXTS[0], *, seed: int = 0, limit: int = 20) -> Sentence:
    return Sentence(TokenizedText("", "", "", "", (), tuple(ids), ()), seed=seed, max_codes=limit)


def sentences(limit: int = 10, grow: int = 7) -> list[Sentence]:
    """Return sentences that differ in text, seed and limit."""
    return [sentence(ids, seed=n, limit=limit + grow * n) for n, ids in enumerate(TEXTS)]


def coqui_codes(gpt: Any, given: torch.Tensor, ids: Sequence[int], limit: int, **settings: Any) -> torch.Tensor:
    with prepared(gpt, limit), torch.no_grad():
        codes: torch.Tensor = gpt.generate(
            cond_latents=given, text_inputs=torch.tensor([list(ids)], device=given.device), **settings
        )
    return codes[0]


@contextmanager
def prepared(gpt: Any, limit: int) -> Iterator[None]:
    """Prepare coqui's GPT for ``generate`` with up to ``limit`` codes."""
    before = gpt.max_gen_mel_tokens
    with quiet_transformers():
        gpt.init_gpt_for_inference()
    gpt.max_gen_mel_tokens = min(limit, int(before))
    try:
        yield
    finally:
        gpt.max_gen_mel_tokens = before
        del gpt.gpt_inference
