"""Beam search: several readings of one text are followed at once, and the likeliest is kept.

It is transformers' search without drawing: what is compared is the sum of the logarithms, bent by the repetition
penalty, over the number of codes to the power of the length penalty. Temperature, top k and top p do not act.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from utils.speech.sampling import penalised
from utils.speech.types import Sampling

SPARE = 2  # candidates for each beam: one of them may end there
Follow = Callable[[list[int], Tensor, int], Tensor]


class Found(NamedTuple):
    """A reading.

    Attributes:
        codes: Of shape (n,).
        latents: Of shape (n, dim).
        logprobs: How likely each code was by the model's own scores.
    """

    codes: Tensor
    latents: Tensor
    logprobs: list[float]


class _Trail(NamedTuple):
    """What the beams have said so far, one row for each.

    Attributes:
        codes: Of shape (beams, n).
        rows: In which row of each step the latent of that code is.
        logprobs: By the model's own scores.
    """

    codes: Tensor
    rows: Tensor
    logprobs: Tensor


class Search:
    """The search for one text.

    Args:
        latents: What the first code is predicted from, of shape (1, dim).
        scores: Gives the scores of all codes for latents.
        follow: Gives the latents behind one more code: from which rows, which codes, at which position.
        sampling: Number of beams and penalties.
        said: Codes that count as said before the first.
        stop: The code that ends a sentence.
        limit: Most codes.
    """

    def __init__(  # two of them are the model
        self,
        latents: Tensor,
        scores: Callable[[Tensor], Tensor],
        follow: Follow,
        sampling: Sampling,
        *,
        said: Sequence[int],
        stop: int,
        limit: int,
    ) -> None:
        self.scores, self.follow, self.sampling = scores, follow, sampling
        self.stop, self.limit, self.position = stop, limit, 0
        self.latents = [latents]  # of each step
        self.sums = torch.zeros(1, device=latents.device)
        nothing = torch.zeros(1, 0, device=latents.device)
        self.trail = _Trail(nothing.long(), nothing.long(), nothing)
        self.begun = list(said)
        self.finished: list[tuple[float, _Trail]] = []
        self.going = True

    def advance(self) -> None:
        """Take one more code into each beam."""
        self.position += 1
        beams, before = self.sampling.beams, self.latents[-1]
        chances = self.scores(before).log_softmax(1)
        bent = penalised(chances, self._said(chances), self.sampling.repetition_penalty) + self.sums[:, None]
        sums, places = bent.flatten().topk(min(SPARE * beams, bent.numel()))
        parents, codes = places // bent.shape[1], places % bent.shape[1]
        grown = self._grown(parents, codes, chances)
        ends = codes == self.stop if self.position < self.limit else torch.ones_like(codes, dtype=torch.bool)
        self._finish(sums[:beams], ends[:beams], grown)
        open_ones = (~ends).nonzero()[:beams, 0]
        self.going = len(open_ones) > 0 and self._promising(float(sums[open_ones[0]]))
        if self.going:
            self.sums = sums[open_ones]
            self.trail = _Trail(*(part[open_ones] for part in grown))
            following = self.follow(parents[open_ones].tolist(), codes[open_ones], self.position)
            self.latents.append(following)

    def best(self) -> Found:
        """Return the likeliest reading."""
        _, trail = self.finished[0]
        steps = zip(self.latents, trail.rows[0].tolist(), strict=False)
        latents = torch.stack([latents[row] for latents, row in steps])
        return Found(trail.codes[0], latents, trail.logprobs[0].tolist())

    def _said(self, chances: Tensor) -> Tensor:
        said = torch.zeros_like(chances, dtype=torch.bool)
        said[:, self.begun] = True
        return said.scatter_(1, self.trail.codes, value=True)

    def _grown(self, parents: Tensor, codes: Tensor, chances: Tensor) -> _Trail:
        more = (codes, parents, chances[parents, codes])
        parts = zip(self.trail, more, strict=True)
        return _Trail(*(torch.cat((part[parents], new[:, None]), dim=1) for part, new in parts))

    def _finish(self, sums: Tensor, ends: Tensor, grown: _Trail) -> None:
        """Keep the best of the readings that have ended; only the best candidates may end."""
        for number in ends.nonzero()[:, 0].tolist():
            score = float(sums[number]) / self._length()
            self.finished.append((score, _Trail(*(part[number : number + 1] for part in grown))))
        self.finished.sort(key=lambda one: one[0], reverse=True)
        del self.finished[self.sampling.beams :]

    def _promising(self, best: float) -> bool:
        """Tell whether an open reading can still be better than the worst that has ended."""
        if len(self.finished) < self.sampling.beams:
            return True
        return best / self._length() > self.finished[-1][0]

    def _length(self) -> float:
        """Return what sums are divided by."""
        return float(self.position**self.sampling.length_penalty)
