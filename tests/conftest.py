"""What several tests share: a core for each, and a disk that fills up at once."""

import gc
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

import tests.run_kinds.sitecustomize  # noqa: F401  # here; in child processes, PYTHONPATH names its folder
from tests.soak.mounting import NotHere, mounted

if TYPE_CHECKING:
    from utils.xtts.tokenizer import Tokenizer

hypothesis.settings.register_profile("shared machine", deadline=None)  # how long an example takes depends on the others
hypothesis.settings.load_profile("shared machine")

# Before torch comes: two tests run side by side, and the threads inside small layers wait longer than they work. The
# programs that tests start inherit it.
os.environ["OMP_NUM_THREADS"] = "1"
PATHS = (str(Path(__file__).with_name("run_kinds")), *filter(None, [os.environ.get("PYTHONPATH")]))
os.environ["PYTHONPATH"] = os.pathsep.join(PATHS)

# Nine thousand tests and their libraries are millions of objects that stay: looking among them for something to free
# took a third of the time of collecting them.
gc.set_threshold(20_000, 50, 100)


def pytest_collection_finish() -> None:
    gc.freeze()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 512 KiB; needs the right to mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    try:
        with mounted(["-t", "tmpfs", "-o", "size=512k", "tmpfs"], folder):
            yield folder
    except NotHere as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small model of random weights; nobody changes it."""
    from testing import random_model

    return random_model.build(
        tmp_path_factory.mktemp("models") / "tiny-random", sizes=random_model.RandomModelSize(layers=2)
    )


@pytest.fixture(scope="session")
def speaking_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished model that speaks Amharic; nobody changes it."""
    from tests.speech import amharic_model

    return amharic_model.build(tmp_path_factory.mktemp("speaking"))


@pytest.fixture(scope="session")
def amharic(tiny_folder: Path) -> "Tokenizer":
    from utils.xtts.tokenizer import prepare_tokenizer
    from utils.xtts.vocabulary import Vocabulary

    return prepare_tokenizer(Vocabulary.load(tiny_folder / "vocab.json"), "am")
