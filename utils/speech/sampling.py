"""Chooses audio codes: sampling and beam search with the results of transformers' ``generate``.

The order of sampling is repetition penalty, temperature, top k, top p. Two things differ from coqui on purpose. coqui
counts its made-up prefix (token 1 and the start code) as generated, so code 1 is penalized in every sentence; here a
code counts once it was generated, and the start code from the beginning. And each sentence has its own random numbers,
so it sounds the same alone and in a batch.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from utils.config import SpeechConfig

CANDIDATES = 2  # per beam, because one of them may end the sentence


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


class Beams(NamedTuple):
    """What the beams generated so far, one row per beam."""

    codes: Tensor  # of shape (beams, n)
    rows: Tensor  # row of each step that holds the latent of that code
    logprobs: Tensor  # the model's own log-probabilities


class BeamSearch:
    """Beam search for one sentence.

    Beams are compared by the sum of their log-probabilities after the repetition penalty, divided by the number of
    codes to the power of the length penalty. Temperature, top k and top p have no effect.
    """

    def __init__(
        self,
        latents: Tensor,  # that the first code is predicted from, of shape (1, dim)
        score: Callable[[Tensor], Tensor],  # returns the scores of all codes for latents
        advance: Callable[[list[int], Tensor, int], Tensor],  # next latents for parent rows, their codes, the position
        config: SpeechConfig,
        *,
        used: Sequence[int],  # codes that count as used from the beginning
        stop: int,  # the stop code
        limit: int,  # maximum number of codes
    ) -> None:
        self.score, self.advance, self.config = score, advance, config
        self.used, self.stop, self.limit = list(used), stop, limit
        self.latents = [latents]  # of each step
        self.sums = torch.zeros(1, device=latents.device)
        nothing = torch.zeros(1, 0, device=latents.device)
        self.beams = Beams(nothing.long(), nothing.long(), nothing)
        self.finished: list[tuple[float, Beams]] = []
        self.position = 0
        self.running = True

    def step(self) -> None:
        self.position += 1
        beams = self.config.beams
        logprobs = self.score(self.latents[-1]).log_softmax(1)
        used = torch.zeros_like(logprobs, dtype=torch.bool)
        used[:, self.used] = True
        used.scatter_(1, self.beams.codes, value=True)
        penalized = penalize(logprobs, used, self.config.repetition_penalty) + self.sums[:, None]
        sums, indices = penalized.flatten().topk(min(CANDIDATES * beams, penalized.numel()))
        parents, codes = indices // penalized.shape[1], indices % penalized.shape[1]
        new = (codes, parents, logprobs[parents, codes])
        pairs = zip(self.beams, new, strict=True)
        grown = Beams(*(torch.cat((part[parents], column[:, None]), dim=1) for part, column in pairs))
        ends = codes == self.stop if self.position < self.limit else torch.ones_like(codes, dtype=torch.bool)
        self._finish(sums[:beams], ends[:beams], grown)
        alive = (~ends).nonzero()[:beams, 0]
        # Whether a running beam can still beat the worst finished one.
        self.running = len(alive) > 0 and (
            len(self.finished) < beams or self._normalized(float(sums[alive[0]])) > self.finished[-1][0]
        )
        if self.running:
            self.sums = sums[alive]
            self.beams = Beams(*(part[alive] for part in grown))
            self.latents.append(self.advance(parents[alive].tolist(), codes[alive], self.position))

    def best(self) -> tuple[list[int], list[Tensor], list[float]]:
        _, beam = self.finished[0]
        rows = beam.rows[0].tolist()
        latents = [latents[row] for latents, row in zip(self.latents, rows, strict=False)]
        return beam.codes[0].tolist(), latents, beam.logprobs[0].tolist()

    def _finish(self, sums: Tensor, ends: Tensor, grown: Beams) -> None:
        for row in ends.nonzero()[:, 0].tolist():
            self.finished.append((self._normalized(float(sums[row])), Beams(*(part[row : row + 1] for part in grown))))
        self.finished.sort(key=lambda each: each[0], reverse=True)
        del self.finished[self.config.beams :]

    def _normalized(self, total: float) -> float:
        return total / float(self.position**self.config.length_penalty)
