"""Encode audio for training: codes of coqui's discrete VAE, and mel frames of the reference.

A clip gets the same codes alone and in a batch. In plain coqui-tts the clips of a batch are padded with silence first,
so the last codes of a clip depend on the others.
"""

import hashlib
import math
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import torch
from torch import Tensor, nn

from utils.core.storage import is_deflated, verify_archive
from utils.media.arrays import Float16Array, Int16Array
from utils.media.audio import Samples
from utils.media.rates import FRAME_SAMPLES, RATE
from utils.xtts.facts import ModelFileError
from utils.xtts.files import DVAE_FILE, MEL_FILE
from utils.xtts.model import strip_prefix

if TYPE_CHECKING:
    from TTS.tts.layers.xtts.dvae import DiscreteVAE

WINDOW = 1024
BANDS = 80
CODE_FFT, REFERENCE_FFT = 1024, 2048  # as in coqui's GPTTrainer: the reference mel is finer
MIN_SAMPLES = WINDOW  # the edges are reflected by half a transform on each side
FORMAT = "1"  # increase when the computation changes


@dataclass(frozen=True)
class EncodedClip:
    """One encoded clip."""

    codes: Int16Array  # one for every 1024 samples
    mel: Float16Array  # frames of the clip as a reference: 80 bands for every 256 samples


class AudioEncoder:
    """The encoder of the DVAE with its mel transforms; ``mel_stats`` are the divisors of the mel bands."""

    rate = RATE
    min_samples = MIN_SAMPLES

    def __init__(self, dvae: "DiscreteVAE", mel_stats: Tensor, device: str = "cpu") -> None:
        self.device = torch.device(device)
        self.encoder: nn.Module = dvae.encoder.eval().requires_grad_(requires_grad=False).to(self.device)
        self.decoder: nn.Module | None = dvae.decoder.eval().to(self.device) if dvae.decoder is not None else None
        self.codebook = dvae.codebook.eval().to(self.device)
        self.stats = mel_stats.float().view(1, BANDS, 1).to(self.device)
        self.mels = {fft: mel_spectrogram(fft).to(self.device) for fft in (CODE_FFT, REFERENCE_FFT)}

    @classmethod
    def load(cls, folder: Path, device: str = "cpu") -> Self:
        weights, stats = (read_tensors_only(folder / name) for name in (DVAE_FILE, MEL_FILE))
        if not isinstance(stats, Tensor) or stats.numel() != BANDS:
            raise ModelFileError(folder / MEL_FILE, "lacks", f"{BANDS} numbers")
        return cls(_dvae(cast("dict[str, Tensor]", weights), folder / DVAE_FILE), stats, device)

    @cached_property
    def fingerprint(self) -> str:
        digest = hashlib.blake2b(
            f"{FORMAT} {RATE} {FRAME_SAMPLES} {WINDOW} {CODE_FFT} {REFERENCE_FFT}".encode(), digest_size=8
        )
        for name, weight in sorted(self.encoder.state_dict().items()):
            digest.update(name.encode() + weight.float().cpu().contiguous().numpy().data)
        for weight in (self.codebook.embed, self.stats):
            digest.update(weight.float().cpu().contiguous().numpy().data)
        return digest.hexdigest()

    @torch.inference_mode()
    def encode(self, clips: Sequence[Samples]) -> list[EncodedClip]:
        """Encode clips of similar length together; each needs at least ``min_samples`` samples."""
        if not clips:
            return []
        waves = [torch.from_numpy(clip).to(self.device)[None] for clip in clips]
        spectra = [self._spectrum(wave, CODE_FFT)[0] for wave in waves]
        lengths = torch.tensor([spectrum.shape[1] for spectrum in spectra], device=self.device)
        padded = nn.utils.rnn.pad_sequence([spectrum.T for spectrum in spectra], batch_first=True).mT
        with torch.backends.cudnn.flags(allow_tf32=False):  # otherwise a GPU gives other codes than a CPU
            hidden, lengths = _masked_forward(self.encoder, padded, lengths)
        _, codes, _ = self.codebook(hidden.mT)
        return [
            EncodedClip(
                row[:length].to(torch.int16).cpu().numpy(),
                self._spectrum(wave, REFERENCE_FFT)[0].T.half().cpu().numpy(),
            )
            for row, length, wave in zip(codes, lengths.tolist(), waves, strict=True)
        ]

    @torch.inference_mode()
    def error_db(self, samples: Samples) -> float:
        """Return how far the decoded mel spectrum is from that of the clip, in dB: what the codec loses."""
        if self.decoder is None:
            raise ModelFileError(Path(DVAE_FILE), "lacks", "decoder")
        spectrum = self._spectrum(torch.from_numpy(samples).to(self.device)[None], CODE_FFT)
        _, codes, _ = self.codebook(self.encoder(spectrum).mT)
        decoded = self.decoder(self.codebook.embed_code(codes).mT)
        frames = min(decoded.shape[2], spectrum.shape[2])
        error = (decoded[..., :frames] - spectrum[..., :frames]).abs() * self.stats
        return float(error.mean()) * 10 / math.log(10)

    def _spectrum(self, wave: Tensor, fft: int) -> Tensor:
        """Return the log mel spectrogram, as coqui's TorchMelSpectrogram does."""
        return torch.log(torch.clamp(self.mels[fft](wave), min=1e-5)) / self.stats


def _masked_forward(layer: nn.Module, hidden: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Run layers over a padded batch so that every convolution sees zeros after the end of each clip.

    Otherwise the bias of each layer fills the padding, and the next layer reads it.
    """
    if isinstance(layer, nn.Conv1d):
        hidden = layer(hidden * (torch.arange(hidden.shape[2], device=hidden.device) < lengths[:, None, None]))
        kernel = layer.kernel_size[0]
        stride = layer.stride[0]
        padding = int(layer.padding[0])
        return hidden, (lengths + 2 * padding - kernel) // stride + 1
    if isinstance(layer, nn.Sequential):
        for part in layer:
            hidden, lengths = _masked_forward(part, hidden, lengths)
        return hidden, lengths
    if isinstance(net := getattr(layer, "net", None), nn.Module):  # a ResBlock
        inner, _ = _masked_forward(net, hidden, lengths)
        return hidden + inner, lengths
    return layer(hidden), lengths


def mel_spectrogram(fft: int) -> nn.Module:
    from torchaudio.transforms import MelSpectrogram

    mel: nn.Module = MelSpectrogram(
        sample_rate=RATE,
        n_fft=fft,
        win_length=WINDOW,
        hop_length=FRAME_SAMPLES,
        f_min=0,
        f_max=8000,
        n_mels=BANDS,
        norm="slaney",
    )
    return mel


def read_tensors_only(path: Path) -> object:
    """Read a .pth that contains only tensors, stored uncompressed."""
    try:
        is_archive = zipfile.is_zipfile(path)
        if not is_archive or not is_deflated(path):  # torch compresses nothing, and a small file could fill the memory
            if is_archive:
                verify_archive(path)
            return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise ModelFileError(path, "missing") from error
    except Exception as error:  # torch raises many kinds of errors for damaged files
        raise ModelFileError(path, "unreadable", type(error).__name__) from error
    raise ModelFileError(path, "unreadable", "compressed tensors")


def _dvae(weights: dict[str, Tensor], path: Path) -> "DiscreteVAE":
    """Build the DVAE in the size of the weights and load its encoder; other arguments are those of the GPTTrainer."""
    from TTS.tts.layers.xtts.dvae import DiscreteVAE

    try:
        hidden, channels, kernel = weights["encoder.0.0.weight"].shape
        dim, tokens = weights["codebook.embed"].shape
        dvae = DiscreteVAE(
            positional_dims=1,
            use_transposed_convs=False,
            channels=channels,
            hidden_dim=hidden,
            kernel_size=kernel,
            codebook_dim=dim,
            num_tokens=tokens,
            num_layers=sum(bool(re.fullmatch(r"encoder\.\d+\.0\.weight", name)) for name in weights),
            num_resnet_blocks=sum(bool(re.fullmatch(r"encoder\.\d+\.net\.0\.weight", name)) for name in weights),
        )
        dvae.encoder.load_state_dict(strip_prefix(weights, "encoder."))
        dvae.codebook.embed.copy_(weights["codebook.embed"])
        try:
            dvae.decoder.load_state_dict(strip_prefix(weights, "decoder."))
        except RuntimeError:  # only an audit needs it
            dvae.decoder = None
    except (KeyError, AttributeError, TypeError, RuntimeError, ValueError) as error:
        raise ModelFileError(path, "mismatch", f"DVAE, {error}") from error
    return dvae
