"""A small XTTS v2 with random weights, for tests and trials without a download: the hub's files, coqui's classes.

coqui fixes the sizes of its vocoder and speaker encoder, 23 million parameters. Their large weights are stored as
overlapping views onto one short run of random numbers, which torch.save keeps as such: the files stay small, and
whoever loads them gets tensors of the full size.
"""

import contextlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from utils.core.folders import replace_folder
from utils.core.storage import file_lock, make_folder, read_text
from utils.media import audio
from utils.media.audio import Samples
from utils.media.rates import RATE
from utils.xtts.files import DVAE_FILE, HUB_FILES, REFERENCE_FILE
from utils.xtts.from_scratch import Size, new_config, write_config, write_speakers, write_weights
from utils.xtts.model import meta_gpt, new_gpt
from utils.xtts.narrow import Width, new_dvae, new_vocoder
from utils.xtts.random_vocabulary import small_vocabulary
from utils.xtts.vocabulary import Vocabulary

if TYPE_CHECKING:
    from TTS.tts.configs.xtts_config import XttsConfig

FORMAT = 1  # counts changes of what is built
RECIPE_FILE = "tiny.json"
FILES = (*HUB_FILES, REFERENCE_FILE, RECIPE_FILE)
CODES = 1024  # as published, and after them the codes for start and stop
HEARD = 128  # of them; the others lie too far away, since chance codes in full number take hours to predict
BEGINNING = 0.05  # of coqui's embeddings, which begin with deviation 1 and so drown what the layers add to them
SHORT = 4096  # weights up to this size are stored as they are
RUN = 1 << 15  # random numbers behind the views of larger ones
SPEAKERS = ("Tiny Abebe", "Tiny Almaz")


@dataclass(frozen=True)
class RandomModelSize:
    """What is smaller than in the published model, which ``PUBLISHED`` describes.

    Attributes:
        layers: Layers of the GPT.
        dim: Its width.
        heads: Heads of its attention.
        tokens: Rows of the vocabulary; 0: as few as the letters need.
        dvae: Width of the discrete VAE's first layer.
        codebook: Width of its codes.
        views: Whether the weights of the GPT and the VAE are stored as views too.
    """

    layers: int = 4
    dim: int = 64
    heads: int = 4
    tokens: int = 0
    dvae: int = 16
    codebook: int = 16
    views: bool = False


PUBLISHED = RandomModelSize(layers=30, dim=1024, heads=16, tokens=6681, dvae=512, codebook=512, views=True)


def build(folder: Path, seed: int = 0, sizes: RandomModelSize | None = None) -> Path:
    """Write the model into a folder, unless the same one is there, and return the folder."""
    sizes = sizes or RandomModelSize()
    recipe = json.dumps({"format": FORMAT, "seed": seed, **asdict(sizes)})
    make_folder(folder.parent)
    with file_lock(folder.parent / f".{folder.name}.lock"):
        if not _is_there(folder, recipe):
            with replace_folder(folder) as new, torch.random.fork_rng(devices=[]), _one_thread():
                torch.manual_seed(seed)
                _write(new, sizes, seed)
                (new / RECIPE_FILE).write_text(recipe, encoding="utf-8")
    return folder


def synthetic_speech(seconds: float, seed: int) -> Samples:
    """Make a sound with the harmonics, syllables and pauses of speech, at 22 050 Hz."""
    random = np.random.default_rng(seed)
    size, syllables = round(seconds * RATE), math.ceil(seconds * 5)
    steady = np.ones(math.ceil(RATE / 5))
    swell = np.tile(np.sin(np.linspace(0, np.pi, steady.size)), syllables)[:size]
    pitch = np.kron(random.uniform(90, 220, syllables), steady)[:size]
    loudness = np.kron(random.choice([0.0, 0.3, 0.6, 1.0], syllables), steady)[:size]
    phase = np.cumsum(2 * np.pi * pitch / RATE)
    colours = random.uniform(0, 1, (10, syllables)) / np.arange(1, 11)[:, None]
    voice = sum(np.kron(colour, steady)[:size] * np.sin(phase * (n + 1)) for n, colour in enumerate(colours))
    hiss = random.standard_normal(size) * np.kron(random.uniform(0, 0.1, syllables) ** 1.5, steady)[:size]
    sound: Samples = (0.25 * loudness * swell * (voice + hiss)).astype(np.float32)
    return sound


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Compute on one thread: with more the sums come out in another order, and the last digits differ."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _is_there(folder: Path, recipe: str) -> bool:
    return all((folder / name).is_file() for name in FILES) and read_text(folder / RECIPE_FILE) == recipe


def _write(folder: Path, sizes: RandomModelSize, seed: int) -> None:
    vocabulary = small_vocabulary(sizes.tokens)
    config = new_config(Size(sizes.layers, sizes.dim, sizes.heads, CODES), vocabulary)
    write_config(folder, config, vocabulary)
    stats = torch.linspace(1.5, 3.0, 80)
    sound = synthetic_speech(CODES * 1024 / RATE, seed)
    torch.save(_dvae(sizes, sound, stats), folder / DVAE_FILE)
    audio.save(folder / REFERENCE_FILE, sound[: 6 * RATE], RATE)
    gpt = _gpt(config, vocabulary, views=sizes.views)
    write_weights(folder, gpt, _views(new_vocoder(Width(sizes.dim)).state_dict()), stats)
    write_speakers(folder, {name: _speaker(sizes.dim) for name in SPEAKERS})


def _gpt(config: "XttsConfig", vocabulary: Vocabulary, *, views: bool) -> dict[str, Tensor]:
    """Draw the weights of the GPT."""
    if views:
        return _views(meta_gpt(config.model_args, vocabulary).state_dict())
    gpt = new_gpt(config.model_args, vocabulary).state_dict()
    gpt |= {name: weight * BEGINNING for name, weight in gpt.items() if name.endswith("_embedding.weight")}
    return {name: weight.half() for name, weight in gpt.items()}


def _views(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Replace what is large by views, and what is small and has no values yet by ones and zeros, as in a norm."""
    runs: dict[int, Tensor] = {}
    made = {}
    for name, weight in weights.items():
        if weight.ndim > 1 and weight.numel() > SHORT and ".torch_spec." not in name:
            scale = round(math.log2(math.sqrt(weight[0].numel())))  # the inputs of one output
            if scale not in runs:
                runs[scale] = torch.randn(RUN) / 2**scale
            made[name] = runs[scale].as_strided(weight.shape, _strides(weight.shape))
        elif weight.is_meta:
            made[name] = torch.full(weight.shape, float(name.endswith(("weight", "gamma"))))
        else:
            made[name] = weight
    return made


def _strides(shape: torch.Size) -> list[int]:
    """Choose the steps of a view such that it ends within the run, and no two rows are the same where there is room."""
    room = RUN - sum(shape[1:]) - 1
    rows = max(1, room // shape[0])
    return [rows, *(1 for _ in shape[1:])]


def _dvae(sizes: RandomModelSize, sound: Samples, stats: Tensor) -> dict[str, Tensor]:
    """Return a random VAE whose codes are what its encoder makes of sound, so that speech has many of them."""
    from TTS.tts.layers.xtts.dvae import dvae_wav_to_mel

    dvae = new_dvae(sizes.dvae, CODES, sizes.codebook)
    weights: dict[str, Tensor] = _views(dvae.state_dict()) if sizes.views else dvae.state_dict()
    dvae.load_state_dict(weights)
    with torch.no_grad():
        codes = dvae.encoder(dvae_wav_to_mel(torch.from_numpy(sound)[None], mel_norms=stats))[0, :, :CODES]
    apart = torch.where(torch.arange(CODES) < HEARD, 1.0, 4.0)
    return weights | {"codebook.embed": codes * apart}


def _speaker(dim: int) -> dict[str, Tensor]:
    """Return what speakers_xtts.pth holds of one voice."""
    return {
        "gpt_cond_latent": torch.randn(1, 32, dim) * 0.1,
        "speaker_embedding": nn.functional.normalize(torch.randn(1, 512, 1), dim=1),
    }
