"""Test speech on a device: CUDA graphs, several threads at once, and the vocoder in half precision."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import accumulate
from operator import eq
from typing import Any

import numpy as np
import torch

from utils.config import SpeechConfig
from utils.media.audio import Samples
from utils.speech.decoder import Decoder
from utils.speech.layers import Precision
from utils.speech.precision import choose
from utils.speech.types import Generation, Sentence
from utils.speech.vocoder import Vocoder
from utils.training.model_size import ModelSize, random_gpt
from utils.xtts.certificate import Check
from utils.xtts.device import trim_memory
from utils.xtts.model import random_vocoder
from utils.xtts.tokenizer import TokenizedText

LENGTHS = (10, 25, 40)  # codes of the sentences
THREADS = 4
MAX_ERROR = 1e-3


class _Speaker:
    """Speech with a random model; no sentence ends by itself."""

    @torch.inference_mode()
    def __init__(self, size: ModelSize, device: torch.device, precision: Precision = "fp32") -> None:
        torch.manual_seed(0)
        gpt: Any = random_gpt(size).to(device)
        gpt.mel_head.bias[gpt.stop_audio_token] = -1e4
        self.decoder = Decoder(gpt, precision, str(device))
        self.decoder.codes *= 0.05  # or they drown what the cache adds
        self.prompt = torch.randn(1, 32, size.dim)

    def generate(self, seed: int = 0) -> list[Generation]:
        text = TokenizedText("", "", "", "", (), tuple(range(5, 25)), ())
        sentences = [Sentence(text, seed=seed + codes, max_codes=codes) for codes in LENGTHS]
        return self.decoder.generate(sentences, self.prompt, SpeechConfig(top_k=2, temperature=1.0))


def decodes(name: str, size: ModelSize, device: torch.device) -> Check:
    """Compare sentences generated with CUDA graphs with those generated without, while rows leave the batch."""
    speaker = _Speaker(size, device)
    speaker.decoder.uses_graphs = False
    plain = speaker.generate()
    speaker.decoder.uses_graphs = True
    speaker.generate()
    start = time.perf_counter()
    replayed = speaker.generate()  # the graphs exist already
    seconds = (time.perf_counter() - start) / max(LENGTHS)
    check = _compared(name, replayed, plain)
    if not speaker.decoder.uses_graphs:
        check = replace(check, passed=False, detail="the steps cannot be captured as graphs")
    kernels = tuple(sorted(speaker.decoder.attention_kernels()))
    return replace(check, milliseconds=1000 * seconds, kernels=kernels)


def speaks_in_its_format(name: str, size: ModelSize, device: torch.device) -> Check:
    """Compare sentences generated in the format that speech would use here with fp32, up to the first other code."""
    precision = choose(str(device)).gpt
    speaker = _Speaker(size, device, precision)
    check = _compared(name, speaker.generate(), _Speaker(size, device).generate(), limit=0.1, share=None)
    kernels = tuple(sorted(speaker.decoder.attention_kernels()))
    return replace(check, detail=f"{precision} {check.detail}", kernels=kernels)


# Long because a speaker and a vocoder are made, then heard alone and together.
def speaks_in_threads(name: str, size: ModelSize, device: torch.device) -> Check:
    """Compare what threads speak at the same time, and free memory meanwhile, with what each of them speaks alone."""
    speaker = _Speaker(size, device)
    vocoder = Vocoder(random_vocoder(size.dim), "fp32", str(device))
    random = torch.Generator().manual_seed(0)
    latents, voice = torch.randn(THREADS, 40, size.dim, generator=random), torch.randn(1, 512, 1, generator=random) / 22

    def speak(number: int) -> tuple[list[Generation], Samples]:
        generations = speaker.generate(100 * number)
        trim_memory()
        return generations, vocoder.sound(latents[number], voice)

    alone = [speak(number) for number in range(THREADS)]
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(speak, range(THREADS)))
    made, wanted = ([one for generations, _ in spoken for one in generations] for spoken in (together, alone))
    errors = [_error(sound, other) for (_, sound), (_, other) in zip(together, alone, strict=True)]
    check = _compared(name, made, wanted)
    detail = f"{check.detail}; sounds by {max(errors):.1e}"
    return replace(check, passed=check.passed and max(errors) <= MAX_ERROR, detail=detail)


def _compared(
    name: str,
    made: Sequence[Generation],
    wanted: Sequence[Generation],
    limit: float = MAX_ERROR,
    share: float | None = 0.5,
) -> Check:
    """Compare latents up to the first code that differs; unless it is None, a share of them has to be the same."""
    worst = 0.0
    agreed = 0
    count = sum(len(each.codes) for each in wanted)
    for one, other in zip(made, wanted, strict=True):
        same = sum(accumulate(map(eq, one.codes, other.codes), min))  # up to the first that differs, if any
        left, right = (torch.stack(each.latents[: same + 1]).cpu() for each in (one, other))
        worst, agreed = max(worst, float((left - right).abs().max() / right.abs().max())), agreed + same
    detail = f"differs by {worst:.1e} (limit {limit:.0e}); {agreed} of {count} codes in a row are the same"
    return Check(name, worst <= limit and (share is None or agreed > share * count), detail)


def vocodes(name: str, device: torch.device) -> Check:
    """Compare the vocoder in the format that speech would use here with fp32, also where its numbers are too large."""
    torch.manual_seed(0)
    decoder = random_vocoder(64)
    latents, voice = torch.randn(40, 64), torch.randn(1, 512, 1) / 22
    half = choose(str(device)).vocoder
    fast = Vocoder(decoder, half, str(device))
    worst = _error(fast.sound(latents, voice), Vocoder(decoder, "fp32", str(device)).sound(latents, voice))
    loud = np.isfinite(fast.sound(latents * 1e6, voice)).all()
    detail = f"{half} differs by {worst:.1e} (limit 1e-01); large numbers {'are finite' if loud else 'are not finite'}"
    return Check(name, passed=worst <= 0.1 and bool(loud), detail=detail)


def _error(sound: Samples, wanted: Samples) -> float:
    return float(np.linalg.norm(sound - wanted) / np.linalg.norm(wanted))
