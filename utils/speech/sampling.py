"""Chooses audio codes: sampling with the results of transformers' ``generate``.

The order of sampling is repetition penalty, temperature, top k, top p. Two things differ from coqui on purpose. coqui
counts its made-up prefix (token 1 and the start code) as generated, so code 1 is penalized in every sentence; here a
code counts once it was generated, and the start code from the beginning. And each sentence has its own random numbers,
so it sounds the same alone and in a batch.
"""

import torch
from torch import Tensor

from utils.config import SpeechConfig


def random_numbers(seed: int, count: int) -> Tensor:
    """Return the random numbers of a sentence: the same on every device, whatever else is in the batch."""
    return torch.rand(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).float()


def penalize(scores: Tensor, used: Tensor, penalty: Tensor | float) -> Tensor:
    """Lower the scores of used codes as transformers does: negative scores are multiplied instead of divided."""
    return torch.where(used, torch.where(scores < 0, scores * penalty, scores / penalty), scores)


def row_settings(config: SpeechConfig, codes: int) -> Tensor:
    """Return what a row is sampled with: temperature, top p, repetition penalty and top k."""
    return torch.tensor([config.temperature, config.top_p, config.repetition_penalty, min(config.top_k, codes)])


def probabilities(scores: Tensor, used: Tensor, settings: Tensor, span: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Return the probabilities of the codes that top k and top p leave, most likely first, and those codes."""
    temperature, top_p, penalty, top_k = settings.T[:, :, None]
    top, codes = penalize(scores, used, penalty).topk(span[1], dim=1)
    if span[0] < span[1]:
        top = top.masked_fill(torch.arange(span[1], device=top.device) >= top_k, -torch.inf)
    chances = (top / temperature).softmax(1)
    before = chances.cumsum(1) - chances
    chances = chances.masked_fill(before >= top_p, 0.0)
    return chances / chances.sum(1, keepdim=True), codes


def choose(
    scores: Tensor, numbers: Tensor, used: Tensor, settings: Tensor, span: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Choose a code for each row, mark it as used, and return the codes and the model's log-probability of each.

    ``numbers`` has a random number from [0, 1) for each row: the same number and scores give the same code. ``span``:
    the smallest and the largest top k. The settings are tensors, since CUDA divides by a number through its reciprocal,
    which gives other bits.
    """
    if span[1] == 1:
        codes = penalize(scores, used, settings[:, 2:3]).argmax(1, keepdim=True)
    else:
        chances, order = probabilities(scores, used, settings, span)
        reached = chances.cumsum(1)
        goal = numbers[:, None] * reached[:, -1:]
        codes = order.gather(1, (reached < goal).sum(1, keepdim=True))
    used.scatter_(1, codes, value=True)
    logprobs = scores.gather(1, codes) - scores.logsumexp(1, keepdim=True)
    return codes.squeeze(1), logprobs.squeeze(1)
