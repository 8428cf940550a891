"""Makes a small finished model that reads Amharic and whose weights are random."""

from pathlib import Path

from utils.xtts import tiny
from utils.xtts.export import write_ready
from utils.xtts.model import load_gpt
from utils.xtts.tokenizer import prepare
from utils.xtts.vocabulary import Vocabulary


def build(folder: Path, layers: int = 1) -> Path:
    """Write a base and make a ready/ of it, whose vocabulary has [am]."""
    base = tiny.build(folder / "base", sizes=tiny.Sizes(layers=layers))
    tokenizer = prepare(Vocabulary.load(base / "vocab.json"), "am")
    state = load_gpt(base, tokenizer).state_dict()
    return write_ready(folder / "ready", base, state, tokenizer, None, {"made": "for a test"})
