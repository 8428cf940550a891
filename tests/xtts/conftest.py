from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from utils.xtts import tiny
from utils.xtts.tokenizer import Tokenizer, prepare
from utils.xtts.vocabulary import Vocabulary


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model; nobody changes it."""
    return tiny.build(tmp_path_factory.mktemp("models") / "tiny", sizes=tiny.Sizes(layers=2))


@pytest.fixture(scope="session")
def amharic(tiny_folder: Path) -> Tokenizer:
    return prepare(Vocabulary.load(tiny_folder / "vocab.json"), "am")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Small models are slower on two threads than on one, and much slower on a busy machine."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
