"""Makes dvae.pth and mel_stats.pth with random weights, in the hub's layout and in any size."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

# The arguments of GPTTrainer.__init__ with the published gpt_num_audio_tokens of 1026.
PUBLISHED: dict[str, Any] = {
    "channels": 80,
    "normalization": None,
    "positional_dims": 1,
    "num_tokens": 1024,
    "codebook_dim": 512,
    "hidden_dim": 512,
    "num_resnet_blocks": 3,
    "kernel_size": 3,
    "num_layers": 2,
    "use_transposed_convs": False,
}
MEL_STATS = torch.linspace(1.0, 3.0, 80)
SMALL = PUBLISHED | {"num_tokens": 64, "codebook_dim": 16, "hidden_dim": 16, "num_resnet_blocks": 2}


def make_dvae(sizes: dict[str, Any], seed: int = 0) -> Any:
    """Build coqui's own module with random weights."""
    from TTS.tts.layers.xtts.dvae import DiscreteVAE, dvae_wav_to_mel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        dvae = DiscreteVAE(**sizes)
        with torch.no_grad():  # the codebook is what the random encoder puts out for sound: many codes occur
            wave = torch.from_numpy(babble(sizes["num_tokens"] * 1024 / 22_050, seed))
            found = dvae.encoder(dvae_wav_to_mel(wave[None], mel_norms=MEL_STATS))[0, :, : sizes["num_tokens"]]
            dvae.codebook.embed.copy_(found)
    return dvae.eval()


def babble(seconds: float, seed: int) -> npt.NDArray[np.float32]:
    """Make a sound that changes its tone and its level twenty times a second."""
    random = np.random.default_rng(seed)
    size, steps = round(seconds * 22_050), round(seconds * 20) + 1
    steady = np.ones(22_050 // 20 + 1)
    pitch, level, noise = (np.kron(random.uniform(0, 1, steps), steady)[:size] for _ in range(3))
    tone = np.sin(np.cumsum(0.02 + 0.5 * pitch**2))
    return (0.5 * level**2 * tone + 0.3 * noise**4 * random.standard_normal(size)).astype(np.float32)


def write_dvae(folder: Path, sizes: dict[str, Any] | None = None, seed: int = 0) -> Path:
    """Write both files into a folder and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(make_dvae(SMALL if sizes is None else sizes, seed).state_dict(), folder / "dvae.pth")
    torch.save(MEL_STATS, folder / "mel_stats.pth")
    return folder
