from pathlib import Path

import pytest

from utils.xtts import tiny
from utils.xtts.tokenizer import Tokenizer, prepare
from utils.xtts.vocabulary import Vocabulary


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small model of random weights; nobody changes it."""
    return tiny.build(tmp_path_factory.mktemp("models") / "tiny-random", sizes=tiny.Sizes(layers=2))


@pytest.fixture(scope="session")
def amharic(tiny_folder: Path) -> Tokenizer:
    return prepare(Vocabulary.load(tiny_folder / "vocab.json"), "am")
