"""What a model hears in references: the numbers that stand for a speaker, as coqui computes them.

They are those of ``get_conditioning_latents`` with the settings of config.json, as ``Xtts.synthesize`` calls it. The
attention is fused, and chunks of one length are listened to together.
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
from utils.speech.loading import LoadedModel
from utils.xtts.codec import REFERENCE_FFT, mel_spectrogram
from utils.xtts.files import CONFIG_FILE, ModelFileError
from utils.xtts.model import read_config
from utils.xtts.state_dict import RELOAD_HINT

SHORTEST = 1.0  # seconds
SILENT = 10 ** (-60 / 20)  # a peak below -60 dB
SHORTEST_CHUNK = 0.33  # seconds; coqui leaves out a shorter tail
EMBEDDING_RATE, EMBEDDING_WIDTH = 16_000, 512
TAIL = 1.0  # seconds read beyond what is heard, for the resampling filter


@dataclass(frozen=True)
class Hearing:
    """How a model listens to references; coqui's names and meanings.

    Attributes:
        gpt_cond_len: Seconds of all clips together that the GPT hears; 0 or less: all.
        gpt_cond_chunk_len: Seconds that it hears at once.
        max_ref_len: Seconds of each clip that are used at all.
        sound_norm_refs: Whether the loudest sample of each clip is brought to 0.75.
    """

    gpt_cond_len: int
    gpt_cond_chunk_len: int
    max_ref_len: int
    sound_norm_refs: bool = False

    @classmethod
    def of(cls, folder: Path) -> "Hearing":
        """Read it from the config.json of a model; what that leaves out is as coqui has it."""
        usual = read_config(folder)  # says what is wrong with the file, if anything is
        told: dict[str, Any] = read_json(folder / CONFIG_FILE)
        values = {name: told.get(name, usual[name]) for name in cls.__dataclass_fields__}
        lengths = [values[name] for name in ("gpt_cond_chunk_len", "max_ref_len")]
        if not all(isinstance(value, int) for value in values.values()) or min(lengths) < 1:
            raise ModelFileError(f"{folder / CONFIG_FILE} has odd lengths of references: {values}.", hint=RELOAD_HINT)
        return cls(**values)


def shapes(opened: LoadedModel) -> dict[str, tuple[int, ...]]:
    """Return the shapes of what stands for a speaker in this model."""
    count, width = opened.gpt.get_submodule("conditioning_perceiver").get_parameter("latents").shape
    return {"prompt": (1, count, width), "embedding": (1, EMBEDDING_WIDTH, 1)}


@torch.no_grad()
def hear(opened: LoadedModel, paths: Sequence[Path], hearing: Hearing) -> dict[str, Tensor]:
    """Return what the GPT begins with and what the vocoder reads, for one speaker in one or several clips."""
    clips = [_heard(path, hearing) for path in paths]
    return {"prompt": _prompt(opened, torch.cat(clips, dim=1), hearing), "embedding": _embedding(opened, clips)}


def _heard(path: Path, hearing: Hearing) -> Tensor:
    """Return what is used of a clip, of shape (1, samples) at 22 050 Hz; resampled as coqui does it."""
    from torchaudio.functional import resample

    rate = audio.probe(path).rate
    samples = torch.from_numpy(audio.load(path, rate, end=hearing.max_ref_len + TAIL))[None]
    heard: Tensor = resample(samples, rate, RATE).clip(-1, 1)[:, : RATE * hearing.max_ref_len]
    if heard.shape[1] < SHORTEST * RATE:
        raise AudioError(
            f"{path} is only {heard.shape[1] / RATE:.2f} s long.", hint="Choose a clip of the voice of 6 to 30 seconds."
        )
    peak = float(heard.abs().max())
    if peak < SILENT:
        raise AudioError(f"{path} is silent.", hint="Choose a clip in which somebody speaks.")
    return heard / peak * 0.75 if hearing.sound_norm_refs else heard


def _prompt(opened: LoadedModel, sound: Tensor, hearing: Hearing) -> Tensor:
    """Return what the GPT begins with: the mean over the chunks of a sound."""
    if hearing.gpt_cond_len > 0:
        sound = sound[:, : RATE * hearing.gpt_cond_len]
    chunks = [chunk for chunk in torch.split(sound, RATE * hearing.gpt_cond_chunk_len, dim=1) if _is_heard(chunk)]
    listen: nn.Module = opened.gpt.get_submodule("conditioning_encoder")
    sum_up: nn.Module = opened.gpt.get_submodule("conditioning_perceiver")
    device = next(listen.parameters()).device
    parts = []
    for _, same in groupby(chunks, key=lambda chunk: chunk.shape[1]):  # all but the last are of one length
        frames = _mel(torch.cat(list(same)), opened.mel_stats.cpu()).to(device)
        parts.append(sum_up(listen(frames).mT))
    mean: Tensor = torch.cat(parts).float().mean(dim=0, keepdim=True)
    return mean.cpu()


def _is_heard(chunk: Tensor) -> bool:
    return chunk.shape[1] >= RATE * SHORTEST_CHUNK


def _mel(sound: Tensor, stats: Tensor) -> Tensor:
    """Return the frames of a sound, as coqui's ``wav_to_mel_cloning`` makes them."""
    power: Tensor = mel_spectrogram(REFERENCE_FFT)(sound)
    return torch.log(power.clamp(min=1e-5)) / stats[:, None]


def _embedding(opened: LoadedModel, clips: Sequence[Tensor]) -> Tensor:
    """Return what the vocoder knows of a speaker: the mean over the clips."""
    from torchaudio.functional import resample

    hear: Any = opened.vocoder.get_submodule("speaker_encoder")
    device = next(hear.parameters()).device
    heard = [hear(resample(clip, RATE, EMBEDDING_RATE).to(device), l2_norm=True) for clip in clips]
    mean: Tensor = torch.stack(heard).float().mean(dim=0)
    return mean.unsqueeze(-1).cpu()
