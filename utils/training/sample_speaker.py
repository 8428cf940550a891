"""Speaking a sentence with the GPT that is being trained, and leaving no trace in it."""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from utils.core.errors import AudioError, TextError
from utils.media.audio import Samples
from utils.media.rates import CODE_SECONDS, RATE
from utils.training.speedups.compilation import uncompiled
from utils.xtts.model import load_vocoder, quiet_transformers

if TYPE_CHECKING:
    from utils.xtts.modules import GPT
    from utils.xtts.tokenizer import Tokenizer

REFERENCE_SECONDS = 6.0  # what one pass of the conditioning encoder hears in training
SHORTEST_REFERENCE = 0.5
MISSING = object()
SETTINGS: dict[str, Any] = {  # those of coqui's Xtts.inference
    "do_sample": True,
    "temperature": 0.75,
    "length_penalty": 1.0,
    "repetition_penalty": 10.0,
    "top_k": 50,
    "top_p": 0.85,
    "num_return_sequences": 1,
    "num_beams": 1,
}


@dataclass(frozen=True)
class Speech:
    """A spoken sentence.

    Attributes:
        samples: The sound at 24 kHz.
        codes: What the GPT said, without the code that ends it.
        ended: Whether it ended by itself rather than at the limit.
    """

    samples: Samples
    codes: npt.NDArray[np.int64]
    ended: bool


class Speaker:
    """Turns text into sound with a GPT that is lent to it.

    Args:
        base: The model folder whose vocoder speaks; it is loaded at the first sentence.
        tokenizer: How the GPT reads: the same object as in training.
        device: Where the vocoder computes.
    """

    def __init__(self, base: Path, tokenizer: "Tokenizer", device: str = "cpu") -> None:
        self.base = base
        self.tokenizer = tokenizer
        self.device = torch.device(device)
        self._vocoder: tuple[nn.Module, Tensor] | None = None

    def speak(
        self,
        gpt: "GPT",
        text: str,
        language: str,
        reference: Samples,
        *,
        seconds_at_most: float = 12.0,
        seed: int = 0,
    ) -> Speech:
        """Speak a text in the voice of a reference.

        Args:
            gpt: coqui's GPT, on any device and in any mode; it is given back as it was.
            text: One sentence.
            language: Its language, by any name.
            reference: Sound of one voice at 22 050 Hz; its first six seconds are heard.
            seconds_at_most: Where to end what does not end by itself.
            seed: Same seed, same speech.
        """
        ids = self._ids(gpt, text, language)
        vocoder, stats = self._loaded()
        voice = _heard(reference)
        limit = max(1, math.ceil(seconds_at_most / CODE_SECONDS))
        with lent(gpt, limit), torch.no_grad():
            torch.manual_seed(seed)
            codes, latents = _said(gpt, ids, _mel(voice, stats))
        with torch.no_grad():
            samples = vocoder(latents.to(self.device), g=_embedding(vocoder, voice.to(self.device)))
        ended = bool(codes[0, -1] == gpt.stop_audio_token)
        spoken = codes[0, :-1] if ended else codes[0]
        return Speech(samples.float().cpu().flatten().numpy(), spoken.cpu().numpy(), ended)

    def close(self) -> None:
        """Free the vocoder; the next sentence loads it again."""
        self._vocoder = None

    def _loaded(self) -> tuple[nn.Module, Tensor]:
        if self._vocoder is None:
            vocoder, stats = load_vocoder(self.base)
            self._vocoder = vocoder.to(self.device), stats
        return self._vocoder

    def _ids(self, gpt: "GPT", text: str, language: str) -> Tensor:
        ids = self.tokenizer.encode(text, language)
        if len(ids) + 2 > int(gpt.max_text_tokens):
            raise TextError(f"{text[:60]!r} has {len(ids)} tokens, too many to say at once.", hint="Shorten it.")
        return torch.tensor([ids])


@contextlib.contextmanager
def lent(gpt: "GPT", limit: int) -> Iterator[None]:
    """Make a GPT ready to generate up to ``limit`` codes, and undo all of it afterwards, random numbers included.

    coqui hangs the GPT in a second module for this and gives it back its ``wte``, both of which would turn up in the
    next checkpoint.
    """
    modes = [(module, module.training) for module in gpt.modules()]
    inner: nn.Module = gpt.gpt
    kept = [(gpt, "gpt_inference"), (inner, "wte"), (gpt, "max_gen_mel_tokens")]
    before = [(module, name, getattr(module, name, MISSING)) for module, name in kept]
    device = next(gpt.parameters()).device
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), uncompiled():
        try:
            gpt.eval()
            with quiet_transformers():
                gpt.init_gpt_for_inference()
            gpt.max_gen_mel_tokens = min(limit, int(gpt.max_gen_mel_tokens))
            yield
        finally:
            for module, name, value in before:
                if value is not MISSING:
                    setattr(module, name, value)
                elif hasattr(module, name):
                    delattr(module, name)
            for module, mode in modes:
                module.training = mode


def _said(gpt: "GPT", ids: Tensor, mel: Tensor) -> tuple[Tensor, Tensor]:
    """Return the codes of a text, and for each of them the vector that the vocoder reads."""
    device = next(gpt.parameters()).device
    ids, prompt = ids.to(device), gpt.get_style_emb(mel.to(device)).transpose(1, 2)
    codes = gpt.generate(cond_latents=prompt, text_inputs=ids, output_attentions=False, **SETTINGS)
    latents = gpt(
        ids,
        torch.tensor([ids.shape[1]], device=device),
        codes.clone(),  # coqui's forward changes what it is given
        torch.tensor([codes.shape[1] * gpt.code_stride_len], device=device),
        cond_latents=prompt,
        return_latent=True,
    )
    return codes, latents.float()


def _heard(reference: Samples) -> Tensor:
    """Return the part of a reference that is listened to."""
    if reference.ndim != 1 or reference.size < SHORTEST_REFERENCE * RATE:
        raise AudioError(
            f"The reference is shorter than {SHORTEST_REFERENCE} seconds.", hint="Choose a longer clip of the voice."
        )
    return torch.from_numpy(np.ascontiguousarray(reference[: round(REFERENCE_SECONDS * RATE)], np.float32))[None]


def _mel(voice: Tensor, stats: Tensor) -> Tensor:
    """Return the frames of the reference, as coqui's Xtts makes them."""
    from utils.xtts.modules import wav_to_mel_cloning

    mel: Tensor = wav_to_mel_cloning(
        voice, mel_norms=stats, n_fft=2048, hop_length=256, win_length=1024, sample_rate=RATE, f_min=0, f_max=8000
    )
    return mel


def _embedding(vocoder: nn.Module, voice: Tensor) -> Tensor:
    """Return what the vocoder knows of a voice."""
    from torchaudio.functional import resample

    hear: Any = vocoder.speaker_encoder
    embedding: Tensor = hear(resample(voice, RATE, 16_000), l2_norm=True)
    return embedding.unsqueeze(-1)
