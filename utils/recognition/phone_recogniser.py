"""The phone recogniser: separable convolutions over log-mels, one row of log-probabilities per 20 ms."""

from functools import cache
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torchaudio.functional import melscale_fbanks

from utils.core.storage import replacing
from utils.media.audio import Samples
from utils.recognition.units import LETTERS, PHONES, SOUNDS_OF, Units

RATE = 16_000
HOP = 160  # 10 ms
FFT = 400  # 25 ms
MELS = 64
STRIDE = 2  # mel frames per row
FRAMES_PER_SECOND = RATE / HOP / STRIDE
CHANNELS = 256
KERNELS = (9, 9, 13, 13, 17, 17, 21, 21)
EMBEDDED = Path(__file__).with_name("amharic.safetensors")


class PhoneRecogniser(nn.Module):
    """Maps normalized log-mels to log-probabilities of the blank and of each unit."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv1d(MELS, CHANNELS, 5, STRIDE, padding=2), nn.BatchNorm1d(CHANNELS), nn.ReLU())
        self.blocks = nn.ModuleList(_Block(kernel) for kernel in KERNELS)
        self.head = nn.Conv1d(CHANNELS, units + 1, 1)

    def forward(self, mels: Tensor) -> Tensor:
        hidden: Tensor = self.stem(mels)
        for block in self.blocks:
            hidden = block(hidden)
        rows: Tensor = self.head(hidden)
        return rows.transpose(1, 2).log_softmax(-1)


class _Block(nn.Module):
    def __init__(self, kernel: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv1d(CHANNELS, CHANNELS, kernel, padding=kernel // 2, groups=CHANNELS, bias=False),
            nn.Conv1d(CHANNELS, CHANNELS, 1, bias=False),
            nn.BatchNorm1d(CHANNELS),
            nn.ReLU(),
            nn.Dropout(0.05),
        )

    def forward(self, hidden: Tensor) -> Tensor:
        more: Tensor = self.layers(hidden)
        return hidden + more


def log_mels(samples: Samples) -> Tensor:
    """Return log-mels (band, frame) with zero mean and unit deviation in each band, whatever the channel."""
    sound = torch.from_numpy(samples).float()
    if sound.numel() < FFT:
        sound = functional.pad(sound, (0, FFT - sound.numel()))
    spectrum = torch.stft(sound, FFT, HOP, window=_window(), return_complex=True).abs().square()
    mels = (_filters() @ spectrum).clamp_min(1e-8).log()
    return (mels - mels.mean(1, keepdim=True)) / (mels.std(1, keepdim=True) + 0.5)


@cache
def _window() -> Tensor:
    return torch.hann_window(FFT)


@cache
def _filters() -> Tensor:
    filters: Tensor = melscale_fbanks(FFT // 2 + 1, 60.0, 7600.0, MELS, RATE)
    return filters.T.contiguous()


def load_recogniser(path: Path, units: Units) -> PhoneRecogniser:
    """Load a recogniser; letters of a new language start as the mean of the phones that they may stand for."""
    from safetensors.torch import load_file

    weights = {name: value.float() for name, value in load_file(path).items()}
    model = PhoneRecogniser(len(weights["head.bias"]) - 1)
    model.load_state_dict(weights, strict=False)  # the counters of batches are not saved
    if len(units.symbols) != len(weights["head.bias"]) - 1:
        _spell_with_letters(model)
    return model.eval()


def save_recogniser(model: PhoneRecogniser, path: Path) -> None:
    """Save the weights with half precision."""
    from safetensors.torch import save_file

    weights = {name: value.half() for name, value in model.state_dict().items() if value.is_floating_point()}
    with replacing(path) as partial:
        save_file(weights, partial)


def _spell_with_letters(model: PhoneRecogniser) -> None:
    rows = {phone: number for number, phone in enumerate(PHONES, 1)}
    sources = [[0], *([rows[phone] for phone in SOUNDS_OF[letter].split()] for letter in LETTERS)]
    old = model.head.state_dict()
    model.head = nn.Conv1d(CHANNELS, len(sources), 1)
    model.head.load_state_dict(
        {name: torch.stack([values[numbers].mean(0) for numbers in sources]) for name, values in old.items()}
    )
