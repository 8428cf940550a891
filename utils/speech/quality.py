"""How far a cheap precision is from fp32: by the codes it would choose, and by the sound it makes of the same codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from utils.media.audio import Samples
from utils.media.rates import OUTPUT_RATE
from utils.speech.decoder import Decoder, Request
from utils.speech.vocoder import Vocoder

ENOUGH = 0.97  # share of codes that a cheap precision has to agree about
WINDOW, STEP, BANDS = 1024, 256, 80  # of the log-mel, in samples and bands
QUIET = 1e-3  # of the loudest band: 60 dB below it counts as silence


class Saying(NamedTuple):
    """A text together with codes that are given, so that two models can be asked the same.

    Attributes:
        request: The text and its voice.
        codes: What is taken as said.
    """

    request: Request
    codes: Tensor


class Mouth(NamedTuple):
    """A model in one precision."""

    decoder: Decoder
    vocoder: Vocoder


@dataclass(frozen=True)
class Agreement:
    """How two precisions of a GPT agree where both are told the same codes before.

    Attributes:
        positions: Codes that were compared.
        share: Part of them of which both find the same one likeliest.
        divergence: Mean divergence (Kullback-Leibler) of all scores, in nats.
    """

    positions: int
    share: float
    divergence: float

    @property
    def enough(self) -> bool:
        """Tell whether they agree so often that the cheap one can be taken."""
        return self.share >= ENOUGH

    def __str__(self) -> str:
        return f"{self.share:.1%} of {self.positions} codes are the same (divergence {self.divergence:.1e} nats)"


@dataclass(frozen=True)
class Quality:
    """How a cheap precision compares with fp32.

    Attributes:
        gpt: Precision of the GPT.
        agreement: On the codes.
        decibels: Mean distance of the log-mels of the sound of the same codes.
        seconds: Sound that was compared.
    """

    gpt: str
    agreement: Agreement
    decibels: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.gpt} against fp32: {self.agreement}; the sound of the same codes is {self.decibels:.2f} dB apart"


def agreement(exact: Decoder, cheap: Decoder, sayings: Sequence[Saying]) -> Agreement:
    """Compare what two precisions find likeliest, each code of which follows the given ones before it."""
    return _agreement([(exact.forced(*saying), cheap.forced(*saying)) for saying in sayings])


def compare(exact: Mouth, cheap: Mouth, sayings: Sequence[Saying], embedding: Tensor) -> Quality:
    """Compare two precisions of a whole model on the same codes.

    Args:
        exact: In fp32.
        cheap: In whatever.
        sayings: Texts, best with codes that the model itself said or that were recorded.
        embedding: The voice for the vocoders.
    """
    scores, distances, samples = [], [], 0
    for request, codes in sayings:
        scored, latents = exact.decoder.retold(request, codes)
        scored_cheaply, cheap_latents = cheap.decoder.retold(request, codes)
        scores.append((scored, scored_cheaply))
        sound = exact.vocoder.sound(latents[: len(codes)], embedding)
        distances.append(distance(sound, cheap.vocoder.sound(cheap_latents[: len(codes)], embedding)) * sound.size)
        samples += sound.size
    return Quality(cheap.decoder.precision, _agreement(scores), sum(distances) / max(samples, 1), samples / OUTPUT_RATE)


def distance(first: Samples, second: Samples) -> float:
    """Return the mean distance of two sounds of one length in decibels, over time and the bands of a mel.

    What lies 60 dB below the loudest band of the first one is as good as silence and counts as that.
    """
    if not len(first):
        return 0.0
    mels = _mel(first), _mel(second)
    floor = max(float(mels[0].max()) * QUIET, torch.finfo(torch.float32).tiny)
    levels = [20 * mel.clamp(min=floor).log10() for mel in mels]
    return float((levels[0] - levels[1]).abs().mean())


def _agreement(scores: Sequence[tuple[Tensor, Tensor]]) -> Agreement:
    positions = sum(len(exact) for exact, _ in scores)
    same = sum(int((exact.argmax(-1) == cheap.argmax(-1)).sum()) for exact, cheap in scores)
    divergence = sum(float(_divergence(exact, cheap)) for exact, cheap in scores)
    return Agreement(positions, same / max(positions, 1), divergence / max(positions, 1))


def _divergence(exact: Tensor, cheap: Tensor) -> Tensor:
    """Return the sum of the divergences of all rows."""
    logs = exact.double().log_softmax(-1), cheap.double().log_softmax(-1)
    return functional.kl_div(logs[1], logs[0], reduction="sum", log_target=True)


def _mel(sound: Samples) -> Tensor:
    """Return the amplitudes of a sound by band and time."""
    from torchaudio.functional import melscale_fbanks

    heard = torch.from_numpy(sound).float()
    heard = functional.pad(heard, (0, max(0, WINDOW - len(heard))))
    window = torch.hann_window(WINDOW)
    spectrum = torch.stft(heard, WINDOW, STEP, window=window, return_complex=True).abs()
    bands: Tensor = melscale_fbanks(WINDOW // 2 + 1, 0.0, OUTPUT_RATE / 2, BANDS, OUTPUT_RATE, norm="slaney")
    return bands.T @ spectrum
