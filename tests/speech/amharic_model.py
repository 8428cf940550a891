"""Makes a small finished model that reads Amharic, whose weights are random, but its sentences end and cost little."""

from pathlib import Path

import torch

from testing import random_model
from testing.random_model import CODES
from testing.untrained import new_vocoder
from testing.widen import widen
from utils.xtts.export import write_ready
from utils.xtts.files import MODEL_FILE
from utils.xtts.model import GPT_PREFIX, VOCODER_PREFIX, load_gpt
from utils.xtts.tokenizer import prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary

ENDING = 2.0  # added to the score of the code that ends a sentence: a short one takes about a second, as in real speech
CHANNELS = 64  # of the vocoder that are not silent; with fewer most random ones hardly sound


def build(folder: Path, layers: int = 1) -> Path:
    """Write a base, and beside it a ready/ of it, whose vocabulary has [am]."""
    sizes = random_model.RandomModelSize(layers=layers)
    base = random_model.build(folder / "base", sizes=sizes)
    speak_cheaply(base / MODEL_FILE, sizes.dim)
    tokenizer = prepare_tokenizer(Vocabulary.load(base / "vocab.json"), "am")
    state = load_gpt(base, tokenizer).state_dict()
    return write_ready(folder / "ready", base, state, tokenizer, None, {"made": "for a test"})


def speak_cheaply(path: Path, dim: int) -> None:
    """Let sentences end, and replace the vocoder by a narrow one; the speaker encoder stays."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(6)  # with most other seeds the sound is nearly constant
        weights = new_vocoder(dim, CHANNELS).state_dict()
    narrow = {name: weight for name, weight in weights.items() if not name.startswith("speaker_encoder.")}
    stored = torch.load(path, weights_only=True)
    stored["model"][f"{GPT_PREFIX}mel_head.bias"][CODES + 1] += ENDING
    stored["model"] |= {VOCODER_PREFIX + name: weight for name, weight in widen(narrow, dim).items()}
    torch.save(stored, path)
