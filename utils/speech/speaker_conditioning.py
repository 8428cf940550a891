"""Computes a voice from reference clips, with the numbers of coqui's ``get_conditioning_latents``.

The settings are those of config.json, as ``Xtts.synthesize`` uses them. The attention is fused, and chunks of the same
length are encoded together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from utils.core.errors import AudioError
from utils.core.storage import read_json
from utils.media import audio
from utils.media.rates import RATE
from utils.speech.loaded_model import LoadedModel
from utils.xtts.codec import REFERENCE_FFT, mel_spectrogram
from utils.xtts.files import CONFIG_FILE, ModelFileError
from utils.xtts.model import RELOAD_HINT, read_config

MIN_SECONDS = 1.0
SILENT = 10 ** (-60 / 20)  # a peak below -60 dB
MIN_CHUNK_SECONDS = 0.33  # coqui leaves out a shorter tail
EMBEDDING_RATE, EMBEDDING_WIDTH = 16_000, 512
TAIL = 1.0  # seconds that are read beyond what is used, for the resampling filter


@dataclass(frozen=True)
class ConditioningSettings:
    """How references are encoded, with coqui's names."""

    gpt_cond_len: int  # seconds of all clips together that the GPT gets; 0 or less: all
    gpt_cond_chunk_len: int  # seconds of a chunk
    max_ref_len: int  # seconds of each clip that are used
    sound_norm_refs: bool = False  # whether each clip is normalized to a peak of 0.75

    @classmethod
    def of(cls, folder: Path) -> "ConditioningSettings":
        """Read them from the config.json of a model; coqui's defaults fill the gaps."""
        defaults = read_config(folder)  # reports what is wrong with the file
        config: dict[str, Any] = read_json(folder / CONFIG_FILE)
        values = {name: config.get(name, defaults[name]) for name in cls.__dataclass_fields__}
        lengths = [values[name] for name in ("gpt_cond_chunk_len", "max_ref_len")]
        if not all(isinstance(value, int) for value in values.values()) or min(lengths) < 1:
            raise ModelFileError(f"{folder / CONFIG_FILE} has invalid reference lengths: {values}.", hint=RELOAD_HINT)
        return cls(**values)


def latent_shapes(model: LoadedModel) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a voice of this model."""
    count, width = model.gpt.get_submodule("conditioning_perceiver").get_parameter("latents").shape
    return {"prompt": (1, count, width), "embedding": (1, EMBEDDING_WIDTH, 1)}


@torch.no_grad()
def encode_speaker(model: LoadedModel, paths: Sequence[Path], settings: ConditioningSettings) -> dict[str, Tensor]:
    """Return the GPT's prompt and the vocoder's embedding of a speaker in one or several clips."""
    clips = [_load_clip(path, settings) for path in paths]
    return {"prompt": _prompt(model, torch.cat(clips, dim=1), settings), "embedding": _embedding(model, clips)}


def _load_clip(path: Path, settings: ConditioningSettings) -> Tensor:
    """Return the used part of a clip, of shape (1, samples) at 22 050 Hz, resampled as coqui does it."""
    from torchaudio.functional import resample

    rate = audio.probe(path).rate
    samples = torch.from_numpy(audio.load(path, rate, end=settings.max_ref_len + TAIL))[None]
    clip: Tensor = resample(samples, rate, RATE).clip(-1, 1)[:, : RATE * settings.max_ref_len]
    if clip.shape[1] < MIN_SECONDS * RATE:
        raise AudioError(
            f"{path} is only {clip.shape[1] / RATE:.2f} s long.", hint="Choose a clip of the voice of 6 to 30 seconds."
        )
    peak = float(clip.abs().max())
    if peak < SILENT:
        raise AudioError(f"{path} is silent.", hint="Choose a clip with speech.")
    return clip / peak * 0.75 if settings.sound_norm_refs else clip


def _prompt(model: LoadedModel, sound: Tensor, settings: ConditioningSettings) -> Tensor:
    """Return the mean of the conditioning latents over the chunks of a sound."""
    if settings.gpt_cond_len > 0:
        sound = sound[:, : RATE * settings.gpt_cond_len]
    chunks = torch.split(sound, RATE * settings.gpt_cond_chunk_len, dim=1)
    used = [chunk for chunk in chunks if chunk.shape[1] >= RATE * MIN_CHUNK_SECONDS]
    encoder: nn.Module = model.gpt.get_submodule("conditioning_encoder")
    perceiver: nn.Module = model.gpt.get_submodule("conditioning_perceiver")
    device = next(encoder.parameters()).device
    parts = []
    for _, same in groupby(used, key=lambda chunk: chunk.shape[1]):  # all but the last have the same length
        frames = _mel(torch.cat(list(same)), model.mel_stats.cpu()).to(device)
        parts.append(perceiver(encoder(frames).mT))
    mean: Tensor = torch.cat(parts).float().mean(dim=0, keepdim=True)
    return mean.cpu()


def _mel(sound: Tensor, stats: Tensor) -> Tensor:
    """Return the mel frames of a sound, as coqui's ``wav_to_mel_cloning`` computes them."""
    power: Tensor = mel_spectrogram(REFERENCE_FFT)(sound)
    return torch.log(power.clamp(min=1e-5)) / stats[:, None]


def _embedding(model: LoadedModel, clips: Sequence[Tensor]) -> Tensor:
    """Return the mean of the speaker embeddings of clips."""
    from torchaudio.functional import resample

    encoder: Any = model.vocoder.get_submodule("speaker_encoder")
    device = next(encoder.parameters()).device
    embeddings = [encoder(resample(clip, RATE, EMBEDDING_RATE).to(device), l2_norm=True) for clip in clips]
    mean: Tensor = torch.stack(embeddings).float().mean(dim=0)
    return mean.unsqueeze(-1).cpu()
