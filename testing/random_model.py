"""A small XTTS v2 with random weights, for tests and benchmarks.

coqui fixes the sizes of its vocoder and speaker encoder, 23 million parameters. Their large weights are stored as
overlapping views of one short run of random numbers, which torch.save keeps: the files are small, and loading them
gives tensors of the full size.
"""

import contextlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Whitespace
from torch import Tensor, nn

from testing.untrained import new_config, new_dvae, new_vocoder
from utils.core import languages
from utils.core.folders import replace_folder
from utils.core.storage import file_lock, make_folder, read_text
from utils.media import audio
from utils.media.audio import Samples
from utils.media.rates import RATE
from utils.xtts.files import CONFIG_FILE, DVAE_FILE, HUB_FILES, MEL_FILE, MODEL_FILE, REFERENCE_FILE, SPEAKERS_FILE
from utils.xtts.model import GPT_PREFIX, VOCODER_PREFIX, meta_gpt, new_gpt
from utils.xtts.vocabulary import SPACE, START, STOP, UNKNOWN, Vocabulary

FORMAT = 1  # increase when the model changes
RECIPE_FILE = "tiny.json"
FILES = (*HUB_FILES, REFERENCE_FILE, RECIPE_FILE)
CODES = 1024  # as published; start and stop follow
USED_CODES = 128  # the others are far away, because predicting random codes in full number takes hours to learn
EMBEDDING_SCALE = 0.05  # coqui's embeddings start with deviation 1, which drowns the output of the layers
MAX_PLAIN = 4096  # weights up to this size are stored as they are
RUN = 1 << 15  # random numbers behind the views of larger weights
SPEAKERS = ("Tiny Abebe", "Tiny Almaz")

MARKS = "!'(),-./:;?\"’"
DIGITS = "0123456789"
LATIN = "abcdefghijklmnopqrstuvwxyzàáâäãåæçčćďèéêëěęğìíîïıłñńňòóôöõøőœřśšşßťùúûüůűýÿźžżə"
CYRILLIC = "абвгдеёжзийклмнопрстуфхцчшщъыьэюя"
ARABIC = "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىيَُِّْ،؟"
DEVANAGARI = "ँंअआइईउऊएऐओऔकखगघचछजझटठडढणतथदधनपफबभमयरलवशषसह़ािीुूृेैोौ्।"
MERGES = (
    "t h|h e|i n|a n|th e|e r|r e|o n|an d|e n|o u|s t|a l|in g|s h|c h|o r|e s|b e|l l|t o|s e|a r|m e|n ə|l ə|d e|s s"
).split("|")


@dataclass(frozen=True)
class RandomModelSize:
    """The sizes that differ from the published model, which ``PUBLISHED`` describes."""

    layers: int = 4  # of the GPT
    dim: int = 64
    heads: int = 4
    tokens: int = 0  # rows of the vocabulary; 0: as few as possible
    dvae: int = 16  # width of the first layer of the DVAE
    codebook: int = 16  # width of its codes
    views: bool = False  # also store the weights of GPT and DVAE as views


PUBLISHED = RandomModelSize(layers=30, dim=1024, heads=16, tokens=6681, dvae=512, codebook=512, views=True)


def build(folder: Path, seed: int = 0, sizes: RandomModelSize | None = None) -> Path:
    """Write the model to a folder, unless the same model is there, and return the folder."""
    sizes = sizes or RandomModelSize()
    recipe = json.dumps({"format": FORMAT, "seed": seed, **asdict(sizes)})
    make_folder(folder.parent)
    with file_lock(folder.parent / f".{folder.name}.lock"):
        complete = all((folder / name).is_file() for name in FILES)
        if not complete or read_text(folder / RECIPE_FILE) != recipe:
            with replace_folder(folder) as new, torch.random.fork_rng(devices=[]), _one_thread():
                torch.manual_seed(seed)
                _write(new, sizes, seed)
                (new / RECIPE_FILE).write_text(recipe, encoding="utf-8")
    return folder


def synthetic_speech(seconds: float, seed: int) -> Samples:
    """Generate audio with the harmonics, syllables and pauses of speech, at 22 050 Hz."""
    random = np.random.default_rng(seed)
    size, syllables = round(seconds * RATE), math.ceil(seconds * 5)
    steady = np.ones(math.ceil(RATE / 5))
    swell = np.tile(np.sin(np.linspace(0, np.pi, steady.size)), syllables)[:size]
    pitch = np.kron(random.uniform(90, 220, syllables), steady)[:size]
    loudness = np.kron(random.choice([0.0, 0.3, 0.6, 1.0], syllables), steady)[:size]
    phase = np.cumsum(2 * np.pi * pitch / RATE)
    timbre = random.uniform(0, 1, (10, syllables)) / np.arange(1, 11)[:, None]
    voice = sum(np.kron(level, steady)[:size] * np.sin(phase * (n + 1)) for n, level in enumerate(timbre))
    hiss = random.standard_normal(size) * np.kron(random.uniform(0, 0.1, syllables) ** 1.5, steady)[:size]
    samples: Samples = (0.25 * loudness * swell * (voice + hiss)).astype(np.float32)
    return samples


def small_vocabulary(size: int = 0) -> Vocabulary:
    """Build a vocabulary with the structure of XTTS v2; ``size`` pads it with pairs of letters and their merges."""
    symbols = dict.fromkeys(MARKS + DIGITS + LATIN + CYRILLIC + ARABIC + DEVANAGARI)
    language_tokens = [language.token for language in languages.known_languages() if language.in_xtts]
    special = [STOP, UNKNOWN, SPACE, START, *language_tokens]
    merges = [(left, right) for left, right in (merge.split(" ") for merge in MERGES)]
    tokens = dict.fromkeys([STOP, UNKNOWN, SPACE, *symbols, START, *language_tokens, *map("".join, merges)])
    for left, right in itertools.product(LATIN + CYRILLIC + ARABIC, repeat=2):
        if len(tokens) >= size:
            break
        if left + right not in tokens:
            tokens[left + right] = None
            merges.append((left, right))
    rows = {token: row for row, token in enumerate(tokens)}
    tokenizer = Tokenizer(BPE(rows, merges, unk_token=UNKNOWN))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.add_special_tokens(special)
    data = json.loads(tokenizer.to_str())
    data["model"]["merges"] = [" ".join(merge) for merge in merges]  # as in the published file
    return Vocabulary(data).checked()


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    """Compute on one thread; with more, sums are ordered differently and the last digits differ."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _write(folder: Path, sizes: RandomModelSize, seed: int) -> None:
    vocabulary = small_vocabulary(sizes.tokens)
    config = new_config(vocabulary, sizes.layers, sizes.dim, sizes.heads, CODES)
    config.save_json(folder / CONFIG_FILE)
    vocabulary.save(folder)
    stats = torch.linspace(1.5, 3.0, 80)
    samples = synthetic_speech(CODES * 1024 / RATE, seed)
    torch.save(_dvae(sizes, samples, stats), folder / DVAE_FILE)
    audio.save(folder / REFERENCE_FILE, samples[: 6 * RATE], RATE)
    if sizes.views:
        gpt = _views(meta_gpt(config.model_args, vocabulary).state_dict())
    else:
        gpt = new_gpt(config.model_args, vocabulary).state_dict()
        gpt |= {name: weight * EMBEDDING_SCALE for name, weight in gpt.items() if name.endswith("_embedding.weight")}
        gpt = {name: weight.half() for name, weight in gpt.items()}
    weights = {GPT_PREFIX + name: weight for name, weight in gpt.items()}
    vocoder = _views(new_vocoder(sizes.dim).state_dict())
    weights |= {VOCODER_PREFIX + name: weight for name, weight in vocoder.items()}
    torch.save({"model": weights | {"mel_stats": stats}}, folder / MODEL_FILE)
    torch.save(stats, folder / MEL_FILE)
    torch.save({name: _speaker(sizes.dim) for name in SPEAKERS}, folder / SPEAKERS_FILE)


def _views(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Replace large weights by views, and small ones without values by the ones and zeros of a norm."""
    runs: dict[int, Tensor] = {}
    views = {}
    for name, weight in weights.items():
        if weight.ndim > 1 and weight.numel() > MAX_PLAIN and ".torch_spec." not in name:
            scale = round(math.log2(math.sqrt(weight[0].numel())))  # inputs of one output
            if scale not in runs:
                runs[scale] = torch.randn(RUN) / 2**scale
            space = RUN - sum(weight.shape[1:]) - 1  # rows stay within the run; no two are alike where there is space
            strides = [max(1, space // weight.shape[0]), *(1 for _ in weight.shape[1:])]
            views[name] = runs[scale].as_strided(weight.shape, strides)
        elif weight.is_meta:
            views[name] = torch.full(weight.shape, float(name.endswith(("weight", "gamma"))))
        else:
            views[name] = weight
    return views


def _dvae(sizes: RandomModelSize, samples: Samples, stats: Tensor) -> dict[str, Tensor]:
    """Return a random DVAE whose codes are encoder outputs of the audio, so that speech uses many of them."""
    from TTS.tts.layers.xtts.dvae import dvae_wav_to_mel

    dvae = new_dvae(sizes.dvae, CODES, sizes.codebook)
    weights: dict[str, Tensor] = _views(dvae.state_dict()) if sizes.views else dvae.state_dict()
    dvae.load_state_dict(weights)
    with torch.no_grad():
        codes = dvae.encoder(dvae_wav_to_mel(torch.from_numpy(samples)[None], mel_norms=stats))[0, :, :CODES]
    scale = torch.where(torch.arange(CODES) < USED_CODES, 1.0, 4.0)
    return weights | {"codebook.embed": codes * scale}


def _speaker(dim: int) -> dict[str, Tensor]:
    return {
        "gpt_cond_latent": torch.randn(1, 32, dim) * 0.1,
        "speaker_embedding": nn.functional.normalize(torch.randn(1, 512, 1), dim=1),
    }
