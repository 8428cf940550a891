"""dvae.pth and mel_stats.pth with random weights, in the hub's layout and in any size."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from testing.untrained import new_dvae

PUBLISHED = (512, 1024, 512)  # width of the first layer, number of codes, width of a code
SMALL = (16, 64, 16)
MEL_STATS = torch.linspace(1.0, 3.0, 80)


def make_dvae(sizes: tuple[int, int, int], seed: int = 0) -> Any:
    """Build coqui's own module with random weights."""
    from TTS.tts.layers.xtts.dvae import dvae_wav_to_mel

    codes = sizes[1]
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        dvae: Any = new_dvae(*sizes)
        wave = torch.from_numpy(babble(codes * 1024 / 22_050, seed))
        outputs = dvae.encoder(dvae_wav_to_mel(wave[None], mel_norms=MEL_STATS))[0, :, :codes]
        dvae.codebook.embed.copy_(outputs)  # so that many codes occur in sound
    return dvae.eval()


def babble(seconds: float, seed: int) -> npt.NDArray[np.float32]:
    """Make a sound that changes its tone and its level twenty times a second, without silence."""
    random = np.random.default_rng(seed)
    size, steps = round(seconds * 22_050), round(seconds * 20) + 1
    steady = np.ones(22_050 // 20 + 1)
    pitch, level, noise = (np.kron(random.uniform(0, 1, steps), steady)[:size] for _ in range(3))
    tone = np.sin(np.cumsum(0.02 + 0.5 * pitch**2))
    return (0.5 * level**2 * tone + 0.3 * noise**4 * random.standard_normal(size)).astype(np.float32)


def write_dvae(folder: Path, sizes: tuple[int, int, int] = SMALL, seed: int = 0) -> Path:
    """Write both files into a folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(make_dvae(sizes, seed).state_dict(), folder / "dvae.pth")
    torch.save(MEL_STATS, folder / "mel_stats.pth")
    return folder
