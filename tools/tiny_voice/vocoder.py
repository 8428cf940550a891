"""The vocoder stage: coqui's HiFi-GAN generator with fewer channels, trained on latents of the trained GPT.

It learns speech whose pulses are where the clock in the latents can place them, see ``clock`` and ``pulses``. First the
lower part learns the waveform alone, through a linear layer behind it: that is fast, and the rest learns from it.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tools.tiny_voice import continuing
from tools.tiny_voice.clock import CODE_FRAMES, FRAME, HANDS, TURN, find_clock, frame_filter, interpolate
from tools.tiny_voice.discriminators import Discriminators, adversarial_loss, discriminator_loss, feature_loss
from tools.tiny_voice.latents import Pairs, gather, vocoder_clips
from tools.tiny_voice.pitch import pitch_correlation, track_pitch
from tools.tiny_voice.pulses import move_pulses
from tools.tiny_voice.speaker_encoder import load_speaker_encoder
from tools.tiny_voice.stages import BuildContext
from tools.tiny_voice.training_loop import Figures, TrainingLoop, load_trained
from tools.untrained import VocoderSize, new_vocoder
from utils.core.storage import make_folder
from utils.evaluation.metrics import mel_cepstral_distance
from utils.media.rates import OUTPUT_RATE

GENERATOR, LOWER, DISCRIMINATORS = "generator", "lower", "discriminators"
WINDOWS = (256, 512, 1024, 2048)  # samples of the spectra that are compared
QUIETEST = 1e-4  # magnitudes below it count as silence
SPECTRAL, WAVEFORM, FEATURES = 1.0, 6.0, 2.0  # weights beside the adversarial loss of 1
BANDS = ((50.0, 280.0, 0.5), (280.0, 800.0, 0.3), (800.0, 2_200.0, 0.2))  # Hz, and the weight of each
BAND_SAMPLES, BAND_STEP = 721, 4  # of the filters
EDGE = 4  # frames at both ends of a crop that are context only
SLOPE, LAST_SLOPE = 0.1, 0.01  # of the leaky ReLU, and of that before the last layer
LOWER_STEP = 32  # samples of the output for each step of the lower part
LEVEL = 0.1  # of speech: scales what the linear layer returns
EMBEDDED = 10.0  # scales the initial weights of the speaker's embedding, whose values are small
GATE, OPEN = 4.0, 0.8  # weight of the clock in the first layer, and the share of a turn's cosine that opens a channel


def train_vocoder(context: BuildContext) -> dict[str, Any]:
    """Train the generator and discriminators, and measure how far unseen clips are from their sound."""
    settings, folder = context.recipe.vocoder, context.folder("vocoder")
    train, judged = vocoder_clips(context)
    pairs = gather(context, train, folder / "train", move_pulses)
    unseen = gather(context, judged, folder / "judged")
    torch.manual_seed(settings.seed)
    decoder: Any = new_vocoder(vocoder_size(context)).to(context.device)
    generator: nn.Module = decoder.waveform_decoder
    if not (context.base and continuing.load_generator(context.base, generator)):
        listen_to_clock(generator, pairs)
        _train_lower(context, generator, pairs)
    discriminators = Discriminators(settings.discriminators).to(context.device)

    def step(number: int, random: np.random.Generator) -> Iterator[tuple[str, Tensor]]:
        frames, voices, wanted = _crops(context, pairs, settings.crops, random)
        made, wanted = (_inner(sound) for sound in (generator(frames, g=voices)[:, 0], wanted))
        loss = _sound_loss(made, wanted)
        if number >= settings.alone:
            real = discriminators(wanted)
            yield DISCRIMINATORS, discriminator_loss(real, discriminators(made.detach()))
            discriminators.requires_grad_(requires_grad=False)
            judged = discriminators(made)
            loss = loss + adversarial_loss(judged) + FEATURES * feature_loss(real, judged)
        yield GENERATOR, loss
        discriminators.requires_grad_(requires_grad=True)

    def evaluate() -> Figures:
        figures = [_figures_of_clip(decoder, unseen, number) for number in range(unseen.count)]
        mcd, pitch = np.nanmean(figures, axis=0)
        return {"mcd_db": round(float(mcd), 3), "pitch_correlation": round(float(pitch), 3)}

    modules = {GENERATOR: generator, DISCRIMINATORS: discriminators}
    loop = TrainingLoop(folder, modules, settings.steps, settings.rate, settings.seed, context.progress("vocoder"))
    figures = loop.run(step, evaluate)
    return {**figures, "parameters": sum(weight.numel() for weight in generator.parameters()), "clips": pairs.count}


def listen_to_clock(generator: Any, pairs: Pairs) -> None:  # noqa: ANN401  # coqui's HifiganGenerator
    """Set up the first layer so that each channel is open in one eighth of a turn of the clock."""
    first, last = pairs.codes[:2]
    dims, size = find_clock(pairs.latents[first:last].astype(np.float32))
    turns = np.exp(-2j * np.pi * np.arange(generator.conv_pre.out_channels) / TURN)
    weight = GATE / size * np.einsum("c,h,t->cht", turns, HANDS / 1.5, frame_filter()).real
    with torch.no_grad():
        generator.conv_pre.weight[:, dims] = torch.from_numpy(weight).to(generator.conv_pre.weight)
        generator.conv_pre.bias.fill_(-GATE * OPEN)
        for condition in (generator.cond_layer, generator.conds[0]):
            condition.weight.mul_(EMBEDDED)


class Lower(nn.Module):
    """The generator up to 750 Hz, and a linear layer that reads the waveform behind it.

    Args:
        generator: Its parts are shared.
    """

    def __init__(self, generator: Any) -> None:  # noqa: ANN401  # coqui's HifiganGenerator
        super().__init__()
        self.conv_pre, self.cond_layer = generator.conv_pre, generator.cond_layer
        self.up, self.condition = generator.ups[0], generator.conds[0]
        self.blocks = nn.ModuleList(generator.resblocks[: generator.num_kernels])
        self.waveform = nn.Conv1d(self.up.out_channels, LOWER_STEP, 1, bias=False)

    def forward(self, frames: Tensor, voices: Tensor) -> Tensor:
        """Return the waveform of frames."""
        entered = functional.leaky_relu(self.conv_pre(frames) + self.cond_layer(voices), SLOPE)
        raised = self.up(entered) + self.condition(voices)
        heard = torch.stack([block(raised) for block in self.blocks]).mean(0)
        samples: Tensor = self.waveform(functional.leaky_relu(heard, SLOPE))
        return LEVEL * samples.transpose(1, 2).flatten(1)


def _train_lower(context: BuildContext, generator: nn.Module, pairs: Pairs) -> None:
    """Train the lower part of the generator alone."""
    settings = context.recipe.vocoder
    lower = Lower(generator).to(context.device)

    def step(_number: int, random: np.random.Generator) -> Iterator[tuple[str, Tensor]]:
        frames, voices, wanted = _crops(context, pairs, settings.lower_crops, random)
        yield LOWER, _sound_loss(_inner(lower(frames, voices)), _inner(wanted))

    progress = context.progress("vocoder, lower part")
    folder = context.folder("vocoder") / LOWER
    make_folder(folder)
    TrainingLoop(folder, {LOWER: lower}, settings.lower_steps, settings.lower_rate, settings.seed, progress).run(step)
    pass_on_waveform(generator, LEVEL * lower.waveform.weight[..., 0].detach())


def pass_on_waveform(generator: Any, reader: Tensor) -> None:  # noqa: ANN401  # coqui's HifiganGenerator
    """Set up the upper part so that it does nothing but what the linear layer behind the lower part did.

    A value passes a leaky ReLU unchanged as the difference of itself and its negative, which needs two channels.

    Args:
        generator: What is set up; it learns the rest.
        reader: Weights of the linear layer, one row for each of its samples.
    """
    steps = [part.stride[0] for part in generator.ups[1:]]
    values = reader.view(steps[0], -1, reader.shape[1])  # of each step of the next layer
    for number, (part, condition, step) in enumerate(
        zip(generator.ups[1:], generator.conds[1:], steps, strict=True), 1
    ):
        weight = part.weight.detach().clone()
        signed = torch.stack([values, -values], 2).flatten(1, 2)  # (steps, channels, inputs)
        carried = signed.shape[1]
        weight[:, :carried] = 0
        first = part.padding[0]
        weight[: signed.shape[2], :carried, first : first + step] = signed.permute(2, 1, 0)
        part.weight = weight
        for layer in (part.bias, condition.weight, condition.bias):
            nn.init.zeros_(layer)
        for block in generator.resblocks[number * generator.num_kernels :][: generator.num_kernels]:
            for layer in block.convs2:
                nn.init.zeros_(layer.parametrizations.weight.original0)
                nn.init.zeros_(layer.bias)
        if number < len(steps):
            values = _differences(carried // 2, SLOPE).view(steps[number], -1, carried)
    nn.init.zeros_(generator.conv_post.weight)
    with torch.no_grad():
        generator.conv_post.weight[:, :2, generator.conv_post.padding[0]] = _differences(1, LAST_SLOPE)


def _differences(values: int, slope: float) -> Tensor:
    """Return the weights that join each value and its negative behind a leaky ReLU."""
    return torch.kron(torch.eye(values), torch.tensor([[1.0, -1.0]])) / (1 + slope)


def load_vocoder(context: BuildContext) -> nn.Module:
    """Return coqui's HifiDecoder with the trained generator and speaker encoder, both narrow."""
    decoder: Any = new_vocoder(vocoder_size(context))
    load_trained(decoder.waveform_decoder, context.folder("vocoder"), GENERATOR)
    decoder.speaker_encoder = load_speaker_encoder(context)
    module: nn.Module = decoder.eval()
    return module


def spectral_loss(made: Tensor, wanted: Tensor) -> Tensor:
    """Return the distance of magnitudes and of their logarithms, the mean over several resolutions."""
    losses = [_distance(_magnitudes(made, size), _magnitudes(wanted, size)) for size in WINDOWS]
    return torch.stack(losses).mean()


def _distance(made: Tensor, wanted: Tensor) -> Tensor:
    convergence: Tensor = (wanted - made).norm() / wanted.norm().clamp(min=QUIETEST)
    return convergence + functional.l1_loss(made.log(), wanted.log())


def _magnitudes(sound: Tensor, size: int) -> Tensor:
    window = torch.hann_window(size, device=sound.device)
    spectrum = torch.stft(sound, size, size // 4, window=window, return_complex=True)
    return torch.sqrt(spectrum.real.square() + spectrum.imag.square() + QUIETEST**2)


def _sound_loss(made: Tensor, wanted: Tensor) -> Tensor:
    return SPECTRAL * spectral_loss(made, wanted) + WAVEFORM * waveform_loss(made, wanted)


def waveform_loss(made: Tensor, wanted: Tensor) -> Tensor:
    """Return the energy of the difference as a share of what is wanted, the mean over bands by their weights."""
    loss = torch.zeros((), device=made.device)
    for lowest, highest, weight in BANDS:
        window = _band(lowest, highest).to(made.device)
        first, second = (functional.conv1d(sound[:, None], window, stride=BAND_STEP) for sound in (made, wanted))
        loss = loss + weight * (first - second).square().mean() / second.square().mean().clamp(min=QUIETEST**2)
    return loss


@cache
def _band(lowest: float, highest: float) -> Tensor:
    """Return a filter that lets a band of frequencies through."""
    times = np.arange(BAND_SAMPLES) - BAND_SAMPLES // 2
    cuts = [2 * cut / OUTPUT_RATE * np.sinc(2 * cut / OUTPUT_RATE * times) for cut in (lowest, highest)]
    return torch.from_numpy((cuts[1] - cuts[0]) * np.hanning(BAND_SAMPLES)).float()[None, None]


def vocoder_size(context: BuildContext) -> VocoderSize:
    """Return the widths of the recipe."""
    settings = context.recipe.vocoder
    return VocoderSize(
        context.recipe.gpt.dim, settings.channels, context.recipe.speaker_encoder.filters, settings.first
    )


def _crops(
    context: BuildContext, pairs: Pairs, count: int, random: np.random.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """Return frames, voices and sound of pieces of clips."""
    drawn = [_crop(pairs, context.recipe.vocoder.frames, random) for _ in range(count)]
    frames, voices, wanted = (torch.stack(parts).to(context.device) for parts in zip(*drawn, strict=True))
    return frames, voices[..., None], wanted


def _crop(pairs: Pairs, size: int, random: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Return frames, voice and sound of a piece of a clip that is long enough."""
    long = np.flatnonzero(np.diff(pairs.codes) * CODE_FRAMES > size + 1)
    latents, voice, sound = pairs.clip(int(random.choice(long)))
    frames = interpolate(latents.T)
    place = int(random.integers(frames.shape[1] - size))
    piece = np.pad(sound[place * FRAME :][: size * FRAME], (0, max(0, (place + size) * FRAME - len(sound))))
    return frames[:, place : place + size], voice, torch.from_numpy(piece)


def _inner(sound: Tensor) -> Tensor:
    return sound[:, EDGE * FRAME : -EDGE * FRAME]


def _figures_of_clip(decoder: nn.Module, pairs: Pairs, clip: int) -> tuple[float, float]:
    """Return the mel-cepstral distance of a vocoded clip from its sound in dB, and the correlation of their pitch."""
    device = next(decoder.parameters()).device
    latents, voice, sound = pairs.clip(clip)
    with torch.no_grad():
        made = decoder(latents[None].to(device), g=voice[None, :, None].to(device)).flatten().cpu().numpy()
    found = mel_cepstral_distance(made, sound)
    tracks = track_pitch(made, OUTPUT_RATE), track_pitch(sound[: made.size], OUTPUT_RATE)
    return float("nan") if found is None else found, pitch_correlation(*tracks)
