"""Chooses the next audio code: sampling as in transformers' ``generate``, in the same order of steps.

The order is repetition penalty, temperature, top k, top p. Two things differ from coqui on purpose. coqui counts its
made-up prefix (token 1 and the start code) as generated, so code 1 is penalized in every sentence; here a code counts
once it was generated, and the start code from the beginning. And each sentence has its own random numbers, so it
sounds the same alone and in a batch.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from utils.config import SpeechConfig


class Choice(NamedTuple):
    """The codes chosen in one step, one per row, and the model's own log-probability of each."""

    codes: Tensor
    logprobs: Tensor


def random_numbers(seed: int, count: int) -> list[float]:
    """Return the random numbers of a sentence: the same on every device, whatever else is in the batch."""
    generator = torch.Generator().manual_seed(seed)
    numbers: list[float] = torch.rand(count, generator=generator, dtype=torch.float64).tolist()
    return numbers


def penalize(scores: Tensor, used: Tensor, penalty: Tensor | float) -> Tensor:
    """Lower the scores of used codes as transformers does: negative scores are multiplied instead of divided."""
    return torch.where(used, torch.where(scores < 0, scores * penalty, scores / penalty), scores)


class Sampler:
    """Samples the codes of a batch and remembers which codes each row has used.

    Args:
        config: Temperature, top k, top p and repetition penalty.
        rows: Rows of the batch.
        codes: Number of codes.
        used: Codes that count as used from the beginning.
        device: Device of the scores.
    """

    def __init__(self, config: SpeechConfig, rows: int, codes: int, used: Sequence[int], device: torch.device) -> None:
        self.top_k = min(config.top_k, codes)
        # Tensors, not numbers: CUDA divides by a number through its reciprocal, which gives other bits.
        self.temperature = torch.full((1, 1), config.temperature, device=device)
        self.top_p = torch.full((1, 1), config.top_p, device=device)
        self.penalty = torch.full((1, 1), config.repetition_penalty, device=device)
        self.used = torch.zeros(rows, codes, dtype=torch.bool, device=device)
        self.used[:, list(used)] = True

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but these."""
        self.used = self.used[rows]

    def probabilities(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probabilities of the remaining codes, most likely first, and the codes."""
        top, codes = penalize(scores, self.used, self.penalty).topk(self.top_k, dim=1)
        chances = (top / self.temperature).softmax(1)
        before = chances.cumsum(1) - chances
        chances = chances.masked_fill(before >= self.top_p, 0.0)
        return chances / chances.sum(1, keepdim=True), codes

    def choose(self, scores: Tensor, numbers: Sequence[float]) -> Choice:
        """Choose a code for each row and mark it as used.

        Args:
            scores: The model's scores in fp32, of shape (rows, codes).
            numbers: A random number from [0, 1) for each row; the same number and scores give the same code.
        """
        if self.top_k == 1:
            codes = penalize(scores, self.used, self.penalty).argmax(1, keepdim=True)
        else:
            chances, order = self.probabilities(scores)
            reached = chances.cumsum(1)
            goal = torch.tensor(numbers, dtype=reached.dtype, device=reached.device).unsqueeze(1) * reached[:, -1:]
            codes = order.gather(1, (reached < goal).sum(1, keepdim=True))
        self.used.scatter_(1, codes, value=True)
        logprobs = scores.gather(1, codes) - scores.logsumexp(1, keepdim=True)
        return Choice(codes.squeeze(1), logprobs.squeeze(1))
