"""Small discriminators that tell generated sound from real sound, so that the vocoder learns detail.

Spectral losses average it away. Folding the sound by several periods shows what repeats, and spectra in several
resolutions show harmonics. Neither gives the vocoder a pitch, see tools/tiny_voice/README.md.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

PERIODS = (2, 3, 5, 7, 11)  # samples; primes, so that they share no multiple
RESOLUTIONS = (512, 1024, 2048)  # samples of a spectrum
SLOPE = 0.1  # of leaky ReLU

Judgement = tuple[Tensor, list[Tensor]]  # of every place, and the features that led to it


class Discriminator(nn.Module):
    """2-D convolutions over one view of the sound."""

    def __init__(self, channels: Sequence[int], kernel: tuple[int, int], stride: tuple[int, int]) -> None:
        super().__init__()
        padding = kernel[0] // 2, kernel[1] // 2
        widths = [1, *channels]
        self.layers = nn.ModuleList(
            weight_norm(nn.Conv2d(width, following, kernel, stride, padding))
            for width, following in zip(widths, channels, strict=False)
        )
        self.last = weight_norm(nn.Conv2d(widths[-1], 1, 3, padding=1))

    def forward(self, view: Tensor) -> Judgement:
        features = []
        for layer in self.layers:
            view = functional.leaky_relu(layer(view), SLOPE)
            features.append(view)
        return self.last(view), features


class Discriminators(nn.Module):
    """One for each period and each resolution."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        widening = [width, 2 * width, 4 * width, 8 * width]
        self.periods = nn.ModuleList(Discriminator(widening, (5, 1), (3, 1)) for _ in PERIODS)
        self.resolutions = nn.ModuleList(Discriminator([2 * width] * 4, (3, 5), (1, 2)) for _ in RESOLUTIONS)

    def forward(self, sound: Tensor) -> list[Judgement]:
        """Judge sounds of shape (sounds, samples)."""
        folded = [_fold(sound, period) for period in PERIODS]
        spectra = [_spectrum(sound, size) for size in RESOLUTIONS]
        views = zip([*self.periods, *self.resolutions], [*folded, *spectra], strict=True)
        return [discriminator(view) for discriminator, view in views]


def discriminator_loss(real: Sequence[Judgement], made: Sequence[Judgement]) -> Tensor:
    """Return the least-squares loss: 1 is asked of real sound and 0 of generated sound."""
    return adversarial_loss(real) + torch.stack([judgement.square().mean() for judgement, _ in made]).mean()


def adversarial_loss(made: Sequence[Judgement]) -> Tensor:
    return torch.stack([(1 - judgement).square().mean() for judgement, _ in made]).mean()


def feature_loss(real: Sequence[Judgement], made: Sequence[Judgement]) -> Tensor:
    """Return the distance of the features of generated sound from those of the real sound."""
    losses = [
        functional.l1_loss(of_made, of_real.detach())
        for (_, reals), (_, mades) in zip(real, made, strict=True)
        for of_real, of_made in zip(reals, mades, strict=True)
    ]
    return torch.stack(losses).mean()


def spectrum(sound: Tensor, size: int) -> Tensor:
    window = torch.hann_window(size, device=sound.device)
    return torch.stft(sound, size, size // 4, window=window, return_complex=True)


def _fold(sound: Tensor, period: int) -> Tensor:
    """Return sound with one period in each row, of shape (sounds, 1, rows, period)."""
    missing = -sound.shape[1] % period
    return functional.pad(sound, (0, missing)).view(len(sound), 1, -1, period)


def _spectrum(sound: Tensor, size: int) -> Tensor:
    """Return magnitudes, of shape (sounds, 1, frames, frequencies)."""
    return torch.view_as_real(spectrum(sound, size)).square().sum(-1).add(1e-8).sqrt().mT[:, None]
