"""Choosing the next code from the scores of all: the same distribution as transformers' generate.

The order is that of transformers: repetition penalty, temperature, top k, top p. Two things differ from coqui on
purpose. coqui gives generate a prefix of made-up tokens, ones and at last the start code, all of which its repetition
penalty counts as said: the score of code 1 is a tenth of what it should be in every sentence. Here a code counts once
it was said, and the start code from the beginning; ``Batch(..., said=(1, start))`` is coqui's way. And each sentence
has random numbers of its own, so that it is the same alone and in a batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from utils.speech.types import Sampling


@dataclass(frozen=True)
class Picked:
    """The codes of one step.

    Attributes:
        codes: One for each row.
        logprobs: How likely each was by the model's own scores, before they were bent.
    """

    codes: Tensor
    logprobs: Tensor


def draws(seed: int, count: int) -> list[float]:
    """Return the random numbers of a sentence: the same on every device, whoever speaks beside it."""
    generator = torch.Generator().manual_seed(seed)
    numbers: list[float] = torch.rand(count, generator=generator, dtype=torch.float64).tolist()
    return numbers


def penalised(scores: Tensor, said: Tensor, penalty: Tensor | float) -> Tensor:
    """Lower the scores of codes that were said, as transformers does: what is negative is multiplied instead."""
    return torch.where(said, torch.where(scores < 0, scores * penalty, scores / penalty), scores)


class Batch:
    """How the rows of a batch are sampled, and what each has said.

    Args:
        samplings: One for each row.
        codes: How many codes there are.
        said: Codes that count as said from the beginning.
        device: Where the scores come from.
    """

    def __init__(self, samplings: Sequence[Sampling], codes: int, said: Sequence[int], device: torch.device) -> None:
        self.widest = min(max(one.top_k for one in samplings), codes)
        kinds = [[one.temperature, one.top_p, one.repetition_penalty, one.top_k] for one in samplings]
        self.settings = torch.tensor(kinds, device=device)
        self.said = torch.zeros(len(samplings), codes, dtype=torch.bool, device=device)
        self.said[:, list(said)] = True
        self._spread()

    def _spread(self) -> None:
        """Cut the settings into columns, once for many steps."""
        self.temperature, self.top_p, self.penalty, self.top_k = torch.split(self.settings, 1, dim=1)
        ranks = torch.arange(self.widest, device=self.settings.device)
        self.beyond = ranks >= self.top_k
        self.even = bool((self.top_k >= self.widest).all())

    def keep(self, rows: Tensor) -> None:
        """Let go of the other rows."""
        self.settings, self.said = self.settings[rows], self.said[rows]
        self.widest = min(int(self.settings[:, 3].max()), self.said.shape[1])
        self._spread()

    def likely(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probabilities of the codes that remain, the likeliest first, and which codes they are."""
        top, codes = penalised(scores, self.said, self.penalty).topk(self.widest, dim=1)
        top = top / self.temperature
        if not self.even:
            top = top.masked_fill(self.beyond, -torch.inf)
        chances = top.softmax(1)
        before = chances.cumsum(1) - chances
        chances = chances.masked_fill(before >= self.top_p, 0.0)
        return chances / chances.sum(1, keepdim=True), codes

    def pick(self, scores: Tensor, numbers: Sequence[float]) -> Picked:
        """Choose a code for each row, and remember that it was said.

        Args:
            scores: What the model says, in fp32 and of shape (rows, codes).
            numbers: One for each row, from 0 to below 1: the same number and scores, the same code.
        """
        if self.widest == 1:
            codes = penalised(scores, self.said, self.penalty).argmax(1, keepdim=True)
        else:
            chances, order = self.likely(scores)
            reached = chances.cumsum(1)
            goal = torch.tensor(numbers, dtype=reached.dtype, device=reached.device).unsqueeze(1) * reached[:, -1:]
            codes = order.gather(1, (reached < goal).sum(1, keepdim=True))
        self.said.scatter_(1, codes, value=True)
        logprobs = scores.gather(1, codes) - scores.logsumexp(1, keepdim=True)
        return Picked(codes.squeeze(1), logprobs.squeeze(1))
