"""A changed byte in a file of an exported model, or in a .pth file, is found before anything is spoken."""

import random
import shutil
from pathlib import Path

import pytest

from tests.xtts.exporting import finished_run, trained_state
from utils.core.errors import AmharicTtsError
from utils.xtts.codec import read_tensors_only
from utils.xtts.files import DIGESTS_FILE, MODEL_FILE
from utils.xtts.model import read_config, read_state_dict
from utils.xtts.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory, tiny_folder: Path, amharic: Tokenizer) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    return finished_run(folder / "project", tiny_folder, amharic, trained_state(tiny_folder, amharic))


def read(folder: Path) -> str:
    read_config(folder)
    weights = [read_state_dict(folder / MODEL_FILE), *(read_tensors_only(folder / name) for name in PTH[1:])]
    return repr(weights)


PTH = (MODEL_FILE, "dvae.pth", "mel_stats.pth", "speakers_xtts.pth")
FILES = (*PTH, "config.json", "vocab.json", "text.json", "about.json", "reference.wav", DIGESTS_FILE)


@pytest.mark.parametrize("name", FILES)
def test_a_changed_byte_is_found(name: str, ready: Path, tmp_path: Path) -> None:
    folder, rng = shutil.copytree(ready, tmp_path / "ready"), random.Random(name)
    intact, content = read(folder), (folder / name).read_bytes()
    for _ in range(12):
        changed = bytearray(content)
        changed[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        (folder / name).write_bytes(changed)
        try:
            found = read(folder)
        except AmharicTtsError:
            continue
        assert (name in PTH, found) == (True, intact)  # it was in the padding between two tensors


def test_a_folder_of_1_1_has_no_digests(ready: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(ready, tmp_path / "ready")
    (folder / DIGESTS_FILE).unlink()
    assert read(folder) == read(ready)


def test_a_missing_digest_is_not_forgiven(ready: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(ready, tmp_path / "ready")
    text = (folder / DIGESTS_FILE).read_text(encoding="utf-8")
    (folder / DIGESTS_FILE).write_text(text.replace('"sha256"', '"sha"', 1), encoding="utf-8")
    with pytest.raises(AmharicTtsError):
        read(folder)
