"""The vocoder stage: coqui's HiFi-GAN generator at a quarter of its width, trained on latents of the trained GPT."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from tools.tiny_voice import continuing
from tools.tiny_voice.discriminators import Discriminators, adversarial_loss, discriminator_loss, feature_loss
from tools.tiny_voice.latents import CODE_OUTPUT, FULL, Pairs, gather, vocoder_clips
from tools.tiny_voice.pitch import pitch_correlation, track_pitch
from tools.tiny_voice.speaker_encoder import load_speaker_encoder
from tools.tiny_voice.stages import BuildContext
from tools.tiny_voice.training_loop import Figures, TrainingLoop, load_trained
from tools.untrained import VocoderSize, new_vocoder
from utils.evaluation.metrics import mel_cepstral_distance
from utils.media.rates import OUTPUT_RATE

GENERATOR, DISCRIMINATORS = "generator", "discriminators"
WINDOWS = (256, 512, 1024, 2048)  # samples of the spectra that are compared
QUIETEST = 1e-4  # magnitudes below it count as silence
SPECTRAL, FEATURES = 8.0, 2.0  # weights beside the adversarial loss of 1
EDGE = 1  # codes at both ends of a crop that are context only


def train_vocoder(context: BuildContext) -> dict[str, Any]:
    """Train the generator and discriminators, and measure how far unseen clips are from their sound."""
    settings, folder = context.recipe.vocoder, context.folder("vocoder")
    train, judged = vocoder_clips(context)
    pairs = gather(context, train, folder / "train", "latents")
    unseen = gather(context, judged, folder / "judged", "judged")
    torch.manual_seed(settings.seed)
    decoder: Any = new_vocoder(_size(context)).to(context.device)
    generator: nn.Module = decoder.waveform_decoder
    if context.base:
        continuing.load_generator(context.base, generator)
    discriminators = Discriminators(settings.discriminators).to(context.device)
    long = np.flatnonzero(np.diff(pairs.codes) >= settings.codes)

    def step(number: int, random: np.random.Generator) -> Iterator[tuple[str, Tensor]]:
        drawn = [_crop(pairs, int(random.choice(long)), settings.codes, random) for _ in range(settings.crops)]
        latents, voices, wanted = (torch.stack(parts).to(context.device) for parts in zip(*drawn, strict=True))
        made = decoder(latents, g=voices[..., None])[:, 0]
        edge = round(EDGE * CODE_OUTPUT)
        made, wanted = made[:, edge:-edge], wanted[:, edge : made.shape[1] - edge]
        loss = SPECTRAL * spectral_loss(made, wanted)
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


def load_vocoder(context: BuildContext) -> nn.Module:
    """Return coqui's HifiDecoder with the trained generator and speaker encoder, both narrow."""
    decoder: Any = new_vocoder(_size(context))
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


def _size(context: BuildContext) -> VocoderSize:
    return VocoderSize(context.recipe.gpt.dim, context.recipe.vocoder.channels, context.recipe.speaker_encoder.filters)


def _crop(pairs: Pairs, clip: int, codes: int, random: np.random.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Return latents, voice and sound of a piece of a clip."""
    first, last = pairs.codes[clip : clip + 2]
    place = int(random.integers(0, last - first - codes + 1))
    start = int(pairs.samples[clip]) + round(place * CODE_OUTPUT)
    latents = pairs.latents[first + place : first + place + codes].astype(np.float32)
    sound = pairs.sound[start : start + int(codes * CODE_OUTPUT)].astype(np.float32) / FULL
    return torch.from_numpy(latents), torch.from_numpy(pairs.voices[clip].copy()), torch.from_numpy(sound)


def _figures_of_clip(decoder: nn.Module, pairs: Pairs, clip: int) -> tuple[float, float]:
    """Return the mel-cepstral distance of a vocoded clip from its sound in dB, and the correlation of their pitch."""
    device = next(decoder.parameters()).device
    latents, voice, sound = pairs.clip(clip)
    with torch.no_grad():
        made = decoder(latents[None].to(device), g=voice[None, :, None].to(device)).flatten().cpu().numpy()
    found = mel_cepstral_distance(made, sound)
    tracks = track_pitch(made, OUTPUT_RATE), track_pitch(sound[: made.size], OUTPUT_RATE)
    return float("nan") if found is None else found, pitch_correlation(*tracks)
