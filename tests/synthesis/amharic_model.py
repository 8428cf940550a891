"""Makes a small finished model that reads Amharic, whose weights are random but for one: its sentences end."""

from pathlib import Path

from utils.xtts import tiny
from utils.xtts.export import write_ready
from utils.xtts.model import load_gpt
from utils.xtts.tokenizer import prepare
from utils.xtts.vocabulary import Vocabulary

ENDING = 2.0  # added to the score of the code that ends a sentence: a short one takes about a second, as in real speech


def build(folder: Path, layers: int = 1) -> Path:
    """Write a base and make a ready/ of it, whose vocabulary has [am]."""
    base = tiny.build(folder / "base", sizes=tiny.Sizes(layers=layers))
    tokenizer = prepare(Vocabulary.load(base / "vocab.json"), "am")
    gpt = load_gpt(base, tokenizer)
    state = gpt.state_dict()
    state["mel_head.bias"][gpt.stop_audio_token] += ENDING
    return write_ready(folder / "ready", base, state, tokenizer, None, {"made": "for a test"})
