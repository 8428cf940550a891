"""What the vocoder learns from: the latents of the trained GPT beside the sound that they stand for."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tools.tiny_voice.codes import read_clips, store_key
from tools.tiny_voice.gpt import trained_gpt
from tools.tiny_voice.speaker_encoder import embedding, load_speaker_encoder
from tools.tiny_voice.stages import BuildContext
from utils.core.batching import evenly_spaced
from utils.core.languages import AMHARIC
from utils.core.paths import resolve_inside
from utils.core.storage import atomic_writer
from utils.dataset.clip import Clip
from utils.dataset.features import ClipFeatures, FeatureStore, text_fingerprint
from utils.media import audio
from utils.media.audio import Samples
from utils.media.rates import CODE_SECONDS, OUTPUT_RATE
from utils.xtts.model import load_gpt
from utils.xtts.tokenizer import Tokenizer

CODE_OUTPUT = CODE_SECONDS * OUTPUT_RATE  # samples of the output that a code stands for; no whole number
FULL = 32767


@dataclass(frozen=True)
class Pairs:
    """Clips one after another.

    Attributes:
        latents: One row a code.
        sound: Samples of the output, 16 bits each.
        voices: One row a clip.
        codes: Row of the first code of each clip, and the end of the last.
        samples: The same of its samples.
    """

    latents: npt.NDArray[np.float16]
    sound: npt.NDArray[np.int16]
    voices: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int64]
    samples: npt.NDArray[np.int64]

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Map what ``gather`` wrote."""
        return cls(**{name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in cls.__dataclass_fields__})

    @property
    def count(self) -> int:
        """Return how many clips there are."""
        return len(self.voices)

    def clip(self, number: int) -> tuple[Tensor, Tensor, Samples]:
        """Return latents, voice and sound of a whole clip."""
        first, last = self.codes[number : number + 2]
        start, stop = self.samples[number : number + 2]
        latents = torch.from_numpy(self.latents[first:last].astype(np.float32))
        voice = torch.from_numpy(self.voices[number].copy())
        return latents, voice, (self.sound[start:stop] / FULL).astype(np.float32)


def gather(context: BuildContext, clips: Sequence[Clip], folder: Path, what: str) -> Pairs:
    """Compute the latents of clips, unless they are there."""
    if not (folder / "samples.npy").is_file():  # the last that is written
        folder.mkdir(parents=True, exist_ok=True)
        _write(context, clips, folder, what)
    return Pairs.load(folder)


def vocoder_clips(context: BuildContext) -> tuple[list[Clip], list[Clip]]:
    """Return the clips that the vocoder learns from, and those that it is judged by."""
    found, settings = read_clips(context.folder("audio"), "sentences"), context.recipe.vocoder
    return evenly_spaced(found.train, settings.clips), evenly_spaced(found.eval, settings.judged)


def mean_top_score(context: BuildContext, clips: Sequence[Clip]) -> float:
    """Return the mean score of the likeliest code, over all codes of some clips."""
    gpt_latents = _GptLatents(context)
    latents = np.concatenate([gpt_latents.compute(clip) for clip in clips]).astype(np.float32)
    with torch.inference_mode():
        scores = gpt_latents.gpt.mel_head(torch.from_numpy(latents).to(context.device))
    return float(scores.amax(1).mean())


def _write(context: BuildContext, clips: Sequence[Clip], folder: Path, what: str) -> None:
    """Write the arrays of all clips."""
    gpt_latents = _GptLatents(context)
    speaker_encoder, dataset = load_speaker_encoder(context).to(context.device), context.folder("audio")
    latents, sounds, voices = [], [], []
    for clip in context.progress(f"vocoder, {what}").over(clips, len(clips)):
        path = resolve_inside(dataset, clip.audio)
        latents.append(gpt_latents.compute(clip))
        sounds.append(_fitted(audio.load(path, OUTPUT_RATE), len(latents[-1])))
        voices.append(embedding(speaker_encoder, path).numpy()[0])
    arrays: dict[str, npt.NDArray[Any]] = {
        "latents": np.concatenate(latents),
        "sound": np.concatenate(sounds),
        "voices": np.stack(voices),
        "codes": np.cumsum([0, *map(len, latents)]),
        "samples": np.cumsum([0, *map(len, sounds)]),
    }
    for name, array in arrays.items():
        with atomic_writer(folder / f"{name}.npy") as file:
            np.save(file, array)


def _fitted(sound: Samples, codes: int) -> npt.NDArray[np.int16]:
    """Bring a sound to the length of its codes: the last one is filled up with silence."""
    size = int(np.ceil(codes * CODE_OUTPUT))
    return np.round(np.pad(sound, (0, max(0, size - sound.size)))[:size].clip(-1, 1) * FULL).astype(np.int16)


class _GptLatents:
    """The trained GPT, which is given what to say.

    Args:
        context: Where it lies.
    """

    def __init__(self, context: BuildContext) -> None:
        folder = trained_gpt(context)
        reading = Tokenizer.load(folder)
        self.device = context.device
        gpt: nn.Module = load_gpt(folder, reading)
        self.gpt: Any = gpt.eval().requires_grad_(requires_grad=False).to(context.device)
        self.store = FeatureStore.open(
            context.folder("audio"), store_key(context), text_fingerprint(reading, AMHARIC.code)
        )

    @torch.inference_mode()
    def compute(self, clip: Clip) -> npt.NDArray[np.float16]:
        """Return one latent for each code of a clip, as coqui's Xtts computes them."""
        found: ClipFeatures = self.store[clip]
        ids, codes = (
            torch.from_numpy(part.astype(np.int64))[None].to(self.device) for part in (found.ids, found.codes)
        )
        mel = torch.from_numpy(found.mel.astype(np.float32)).T[None].to(self.device)
        latents = self.gpt(
            ids,
            torch.tensor([ids.shape[1]], device=self.device),
            codes,
            torch.tensor([codes.shape[1] * int(self.gpt.code_stride_len)], device=self.device),
            cond_latents=self.gpt.get_style_emb(mel).mT,
            return_latent=True,
        )
        said: npt.NDArray[np.float16] = latents[0].half().cpu().numpy()
        return said
