"""Beam search for one sentence, with the results of transformers' beam search without sampling.

Beams are compared by the sum of their log-probabilities after the repetition penalty, divided by the number of codes
to the power of the length penalty. Temperature, top k and top p have no effect.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from utils.config import SpeechConfig
from utils.speech.sampling import penalize

CANDIDATES = 2  # per beam, because one of them may end the sentence


class Beams(NamedTuple):
    """What the beams generated so far, one row per beam.

    Attributes:
        codes: Of shape (beams, n).
        rows: Row of each step that holds the latent of that code.
        logprobs: The model's own log-probabilities.
    """

    codes: Tensor
    rows: Tensor
    logprobs: Tensor


class BeamSearch:
    """The search for one sentence.

    Args:
        latents: Latents that the first code is predicted from, of shape (1, dim).
        score: Returns the scores of all codes for latents.
        advance: Returns the next latents, given parent rows, their codes and the position.
        config: Number of beams, repetition penalty and length penalty.
        used: Codes that count as used from the beginning.
        stop: The stop code.
        limit: Maximum number of codes.
    """

    def __init__(  # two of them are the model
        self,
        latents: Tensor,
        score: Callable[[Tensor], Tensor],
        advance: Callable[[list[int], Tensor, int], Tensor],
        config: SpeechConfig,
        *,
        used: Sequence[int],
        stop: int,
        limit: int,
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
        """Add one code to each beam."""
        self.position += 1
        beams = self.config.beams
        logprobs = self.score(self.latents[-1]).log_softmax(1)
        penalized = penalize(logprobs, self._used_mask(logprobs), self.config.repetition_penalty) + self.sums[:, None]
        sums, indices = penalized.flatten().topk(min(CANDIDATES * beams, penalized.numel()))
        parents, codes = indices // penalized.shape[1], indices % penalized.shape[1]
        grown = self._grow(parents, codes, logprobs)
        ends = codes == self.stop if self.position < self.limit else torch.ones_like(codes, dtype=torch.bool)
        self._finish(sums[:beams], ends[:beams], grown)
        alive = (~ends).nonzero()[:beams, 0]
        self.running = len(alive) > 0 and self._can_improve(float(sums[alive[0]]))
        if self.running:
            self.sums = sums[alive]
            self.beams = Beams(*(part[alive] for part in grown))
            self.latents.append(self.advance(parents[alive].tolist(), codes[alive], self.position))

    def best(self) -> tuple[list[int], list[Tensor], list[float]]:
        """Return the codes, latents and log-probabilities of the best finished beam."""
        _, beam = self.finished[0]
        rows = beam.rows[0].tolist()
        latents = [latents[row] for latents, row in zip(self.latents, rows, strict=False)]
        return beam.codes[0].tolist(), latents, beam.logprobs[0].tolist()

    def _used_mask(self, scores: Tensor) -> Tensor:
        mask = torch.zeros_like(scores, dtype=torch.bool)
        mask[:, self.used] = True
        return mask.scatter_(1, self.beams.codes, value=True)

    def _grow(self, parents: Tensor, codes: Tensor, logprobs: Tensor) -> Beams:
        new = (codes, parents, logprobs[parents, codes])
        pairs = zip(self.beams, new, strict=True)
        return Beams(*(torch.cat((part[parents], column[:, None]), dim=1) for part, column in pairs))

    def _finish(self, sums: Tensor, ends: Tensor, grown: Beams) -> None:
        """Keep the best finished beams."""
        for row in ends.nonzero()[:, 0].tolist():
            self.finished.append((self._normalized(float(sums[row])), Beams(*(part[row : row + 1] for part in grown))))
        self.finished.sort(key=lambda one: one[0], reverse=True)
        del self.finished[self.config.beams :]

    def _can_improve(self, best: float) -> bool:
        """Return whether a running beam can still beat the worst finished one."""
        return len(self.finished) < self.config.beams or self._normalized(best) > self.finished[-1][0]

    def _normalized(self, total: float) -> float:
        return total / float(self.position**self.config.length_penalty)
