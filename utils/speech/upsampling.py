"""From the vectors of the GPT to the frames of the vocoder: two linear interpolations, at positions of our own.

One code lasts 1024 samples at 22 050 Hz and the vocoder makes 256 samples at 24 000 Hz of each frame, so the ratio of
both is odd. The positions are counted from the beginning of the sentence as torch's ``interpolate`` counts them, in
float32 too: thus any part of a sentence gets the very frames that it has in the whole.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Ladder:
    """The steps by which a sequence grows, each a linear interpolation.

    Attributes:
        scales: What each step multiplies the length by.
    """

    scales: tuple[float, ...]

    @classmethod
    def of(cls, decoder: nn.Module) -> "Ladder":
        """Read the steps off coqui's HifiDecoder."""
        sizes: Any = decoder
        first = sizes.ar_mel_length_compression / sizes.output_hop_length
        second = sizes.output_sample_rate / sizes.input_sample_rate
        return cls((first,) if second == 1 else (first, second))

    def count(self, codes: int) -> int:
        """Return the number of frames of so many codes."""
        for scale in self.scales:
            codes = int(codes * scale)
        return codes

    def settled(self, codes: int) -> int:
        """Return how many frames stay as they are, whatever codes follow."""
        for scale in self.scales:
            codes = _settled(codes, scale)
        return codes

    def first_code(self, frame: int) -> int:
        """Return the first code that a frame and those after it are made of."""
        for scale in reversed(self.scales):
            frame = int(_places(frame, frame + 1, scale))
        return frame

    def take(self, latents: Tensor, offset: int, first: int, last: int) -> Tensor:
        """Return the frames from ``first`` up to ``last``.

        Args:
            latents: One row a code.
            offset: Number of codes before them that are no longer there.
            first: Number of the first frame.
            last: Number of the frame after the last one.
        """
        return self._climb(latents, offset, len(self.scales), first, last)

    def _climb(self, latents: Tensor, offset: int, step: int, first: int, last: int) -> Tensor:
        if not step:
            return latents[first - offset : last - offset]
        size = Ladder(self.scales[: step - 1]).count(offset + len(latents))
        places = _places(first, last, self.scales[step - 1], size)
        left = places.long().clamp(max=size - 1)
        right = (left + 1).clamp(max=size - 1)
        start = int(left[0])
        below = self._climb(latents, offset, step - 1, start, int(right[-1]) + 1)
        share = (places - left).clamp(max=1)[:, None].to(below.device)
        left, right = (left - start).to(below.device), (right - start).to(below.device)
        return below[left] * (1 - share) + below[right] * share


def _places(first: int, last: int, scale: float, size: int = 0) -> Tensor:
    """Return where the places of the longer sequence lie in the shorter one, of ``size`` places if that is known."""
    each = torch.arange(first, last, dtype=torch.float32, device="cpu")
    if size and int(size * scale) == size:  # what is too short to grow by one place is copied by torch
        return each
    return ((each + 0.5) * torch.tensor(1 / scale, dtype=torch.float32) - 0.5).clamp(min=0)


def _settled(size: int, scale: float) -> int:
    count = int(size * scale)
    if count == size:
        return 0
    while count and int(_places(count - 1, count, scale)) + 1 > size - 1:
        count -= 1
    return count
