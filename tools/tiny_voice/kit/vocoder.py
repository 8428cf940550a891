"""coqui's HiFi-GAN generator, with channels of its own choice in every stage, trained on speech on the grid.

There the waveform follows from the latents, so it is compared itself: first alone, then with discriminators, which add
what an average lacks. The sound lasts 1,024 samples a code, so every code has four frames.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from tools.tiny_voice.grid import CODE
from tools.tiny_voice.kit.clips import FULL, Clips
from tools.tiny_voice.kit.clock import Figures, Training, autocast
from tools.tiny_voice.kit.discriminators import (
    Discriminators,
    adversarial_loss,
    discriminator_loss,
    feature_loss,
    spectrum,
)

CHANNELS = 512, 128, 64, 32, 16  # the first stages are cheap: they have few frames
UPSAMPLINGS = (8, 16), (8, 16), (2, 4), (2, 4)  # factor and kernel
KERNELS, DILATIONS = (3, 7, 11), (1, 3, 5)
EMBEDDING, SLOPE, FRAMES = 512, 0.1, 4
SPECTRA = 256, 512, 1024, 2048  # samples of the windows that are compared
FLOOR = 1e-4
MAGNITUDES, COMPLEX, WAVE, FEATURES = 2.0, 4.0, 2.0, 2.0  # weights beside the adversarial loss of 1
ADVERSARIAL = 0.68  # share of the time until discriminators
OTHERS = 0.2  # share of the crops from voices that are not among those learnt most from
EDGE = 1  # codes at both ends of a crop that are context only
JUDGED = 48  # crops that are measured
CODES = 16  # of a piece
RATE = 1e-3  # highest learning rate; a quarter of it for the discriminators
SEGMENT = 8192  # samples that the discriminators see


class ResBlock(nn.Module):
    """coqui's ResBlock1."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()

        def layer(dilation: int) -> nn.Module:
            padding = (kernel - 1) * dilation // 2
            convolution = nn.Conv1d(channels, channels, kernel, padding=padding, dilation=dilation)
            normalized: nn.Module = weight_norm(convolution)
            return normalized

        self.convs1 = nn.ModuleList(map(layer, DILATIONS))
        self.convs2 = nn.ModuleList(layer(1) for _ in DILATIONS)

    def forward(self, hidden: Tensor) -> Tensor:
        for first, second in zip(self.convs1, self.convs2, strict=True):
            inner = first(functional.leaky_relu(hidden, SLOPE))
            hidden = hidden + second(functional.leaky_relu(inner, SLOPE))
        return hidden


class Generator(nn.Module):
    """Latents and voices in, sound out."""

    def __init__(self, inputs: int, channels: Sequence[int] = CHANNELS) -> None:
        super().__init__()
        self.conv_pre = nn.Conv1d(inputs, channels[0], 7, padding=3)
        steps = [(*widths, *each) for *widths, each in zip(channels, channels[1:], UPSAMPLINGS, strict=False)]
        self.ups = nn.ModuleList(
            weight_norm(nn.ConvTranspose1d(width, following, kernel, factor, padding=(kernel - factor) // 2))
            for width, following, factor, kernel in steps
        )
        self.resblocks = nn.ModuleList(ResBlock(width, kernel) for width in channels[1:] for kernel in KERNELS)
        self.conv_post = nn.Conv1d(channels[-1], 1, 7, padding=3, bias=False)
        self.cond_layer = nn.Conv1d(EMBEDDING, channels[0], 1)
        self.conds = nn.ModuleList(nn.Conv1d(EMBEDDING, width, 1) for width in channels[1:])

    def forward(self, latents: Tensor, voices: Tensor) -> Tensor:
        """Return sounds of latents of shape (clips, codes, channels) and voices of shape (clips, 512, 1)."""
        frames = functional.interpolate(latents.mT, scale_factor=float(FRAMES), mode="linear")
        hidden = self.conv_pre(frames) + self.cond_layer(voices)
        for stage, (up, cond) in enumerate(zip(self.ups, self.conds, strict=True)):
            hidden = up(functional.leaky_relu(hidden, SLOPE)) + cond(voices)
            blocks = self.resblocks[stage * len(KERNELS) : (stage + 1) * len(KERNELS)]
            hidden = torch.stack([block(hidden) for block in blocks]).mean(0)
        sound: Tensor = torch.tanh(self.conv_post(functional.leaky_relu(hidden)))[:, 0]
        return sound


class Lesson:
    """What one update of the vocoder is.

    Args:
        generator: The generator.
        clips: What it learns from.
        latents: One row for each code of the clips.
        voices: Embedding of each voice.
        crops: Pieces of an update.
    """

    def __init__(
        self,
        generator: Generator,
        clips: Clips,
        latents: npt.NDArray[np.float16],
        voices: Tensor,
        crops: int,
    ) -> None:
        self.generator, self.clips, self.crops = generator, clips, crops
        self.device = voices.device
        self.latents, self.voices = torch.from_numpy(latents).to(self.device), voices
        self.sound = torch.from_numpy(np.array(clips.sound)).to(self.device)
        self.discriminators = Discriminators().to(self.device)
        long = np.diff(clips.first) >= CODES
        self.learnt, self.others, self.unseen = (
            [number for number in clips.select(unseen=unseen, heard=heard) if long[number]]
            for unseen, heard in ((False, True), (False, False), (True, True))
        )

    def step(self, progress: float, random: np.random.Generator) -> Iterator[tuple[str, Tensor]]:
        """Yield the losses of some pieces of sound."""
        drawn = [self.others if self.others and random.random() < OTHERS else self.learnt for _ in range(self.crops)]
        latents, voices, wanted = self._pieces([int(random.choice(some)) for some in drawn], random)
        with autocast(self.device):
            made = self.generator(latents, voices)
        made, wanted = (_inner(sound.float()) for sound in (made, wanted))
        loss = regression_loss(made, wanted)
        if progress >= ADVERSARIAL:
            start = int(random.integers(0, max(1, made.shape[1] - SEGMENT)))
            made, wanted = (sound[:, start : start + SEGMENT] for sound in (made, wanted))
            with autocast(self.device):
                real = self.discriminators(wanted)
                yield "discriminators", discriminator_loss(real, self.discriminators(made.detach()))
                self.discriminators.requires_grad_(requires_grad=False)
                judged = self.discriminators(made)
                loss = loss + adversarial_loss(judged) + FEATURES * feature_loss(real, judged)
        yield "generator", loss
        self.discriminators.requires_grad_(requires_grad=True)

    @torch.no_grad()
    def measure(self, generator: nn.Module) -> Figures:
        """Return the share of the energy of unseen speech that is not explained, and the same of learnt speech."""
        return {"unseen": self._left(generator, self.unseen), "learnt": self._left(generator, self.learnt)}

    def _left(self, generator: nn.Module, numbers: Sequence[int]) -> float:
        random = np.random.default_rng(0)
        drawn = [int(random.choice(numbers)) for _ in range(JUDGED)]
        left = whole = 0.0
        for begin in range(0, JUDGED, 8):
            latents, voices, wanted = self._pieces(drawn[begin : begin + 8], random)
            made, wanted = (_inner(sound) for sound in (generator(latents, voices), wanted))
            left += float((made - wanted).square().sum())
            whole += float(wanted.square().sum())
        return round(left / whole, 4)

    def _pieces(self, numbers: Sequence[int], random: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Return latents, voices and sounds of a random piece of each clip."""
        first = self.clips.first
        starts = [int(random.integers(first[number], first[number + 1] - CODES + 1)) for number in numbers]
        latents = torch.stack([self.latents[start : start + CODES] for start in starts]).float()
        sounds = torch.stack([self.sound[start * CODE : (start + CODES) * CODE] for start in starts])
        voices = self.voices[[self.clips.takes[number].speaker for number in numbers]]
        return latents, voices.float(), sounds.float() / FULL


def train(lesson: Lesson, work: Path, path: Path, seconds: float, every: float) -> None:
    """Train for a time; the averaged generator is written at every save."""

    def measure(module: nn.Module) -> Figures:
        torch.save({name: weight.cpu().half() for name, weight in module.state_dict().items()}, path)
        return lesson.measure(module)

    modules = {"generator": lesson.generator, "discriminators": lesson.discriminators}
    training = Training(work, "vocoder", modules, {"generator": RATE, "discriminators": RATE / 4}, seconds, every)
    training.run(lesson.step, measure)


def regression_loss(made: Tensor, wanted: Tensor) -> Tensor:
    """Compare waves, complex spectra and magnitudes."""
    wave = (made - wanted).abs().mean() / wanted.abs().mean().clamp(min=FLOOR)
    pairs = [(spectrum(made, size), spectrum(wanted, size)) for size in SPECTRA]
    magnitudes = torch.stack([_magnitude_loss(*pair) for pair in pairs]).mean()
    distances = torch.stack([_complex_loss(*pair) for pair in pairs]).mean()
    return WAVE * wave + MAGNITUDES * magnitudes + COMPLEX * distances


def _magnitude_loss(made: Tensor, wanted: Tensor) -> Tensor:
    one, other = (_absolute(spectrum) for spectrum in (made, wanted))
    convergence: Tensor = (other - one).norm() / other.norm().clamp(min=FLOOR)
    return convergence + (one.log() - other.log()).abs().mean()


def _complex_loss(made: Tensor, wanted: Tensor) -> Tensor:
    """Compare complex spectra, each place weighted such that quiet bands count too."""
    level = _absolute(wanted)
    weights = (level + 0.02 * level.amax(dim=(1, 2), keepdim=True)).rsqrt()
    return (_absolute(made - wanted) * weights).mean() / (level * weights).mean()


def _absolute(spectrum: Tensor) -> Tensor:
    power: Tensor = spectrum.real.square() + spectrum.imag.square() + FLOOR**2
    return power.sqrt()


def _inner(sound: Tensor) -> Tensor:
    return sound[:, EDGE * CODE : -EDGE * CODE]
