import hashlib
import shutil
from pathlib import Path

import pytest
import torch

from tests.xtts.exporting import plain_model
from tools import random_model
from tools.random_model import small_vocabulary
from utils.core import languages
from utils.xtts.model import load_gpt, match_gpt

pytestmark = pytest.mark.slow


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_plain_coqui_loads_it_and_its_files_take_a_few_megabytes(tiny_folder: Path) -> None:
    assert {path.name for path in tiny_folder.iterdir()} == set(random_model.FILES)
    assert sum(path.stat().st_size for path in tiny_folder.iterdir()) < 6e6
    assert list(plain_model(tiny_folder).speaker_manager.name_to_id) == list(random_model.SPEAKERS)


@pytest.mark.parametrize(("seed", "threads"), [(0, 2), (1, 1)])
def test_the_seed_determines_every_byte(tiny_folder: Path, tmp_path: Path, seed: int, threads: int) -> None:
    torch.set_num_threads(threads)
    before = torch.random.get_rng_state()
    again = random_model.build(tmp_path / "again", seed, random_model.RandomModelSize(layers=2))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert torch.get_num_threads() == threads
    differing = {name for name, _ in hashes(again).items() ^ hashes(tiny_folder).items()}
    assert ({"model.pth", "dvae.pth", "reference.wav"} <= differing) if seed else not differing
    assert "vocab.json" not in differing


def test_it_is_built_once_and_again_when_a_file_is_gone(tiny_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "tiny")
    written = (folder / "model.pth").stat().st_mtime_ns
    random_model.build(folder, sizes=random_model.RandomModelSize(layers=2))
    assert (folder / "model.pth").stat().st_mtime_ns == written
    (folder / "dvae.pth").unlink()
    random_model.build(folder, sizes=random_model.RandomModelSize(layers=2))
    assert hashes(folder) == hashes(tiny_folder)


def test_the_vocabulary_has_the_tokens_of_xtts_in_their_places() -> None:
    vocabulary = small_vocabulary()
    assert [vocabulary.ids[token] for token in ("[STOP]", "[UNK]", "[SPACE]")] == [0, 1, 2]
    assert {language.token for language in languages.XTTS_LANGUAGES} | {"[START]"} <= vocabulary.special
    assert small_vocabulary(6681).size == 6681


def test_the_full_size_has_the_published_number_of_weights(tmp_path: Path) -> None:
    folder = random_model.build(tmp_path / "v2.0.2", sizes=random_model.PUBLISHED)
    assert sum(path.stat().st_size for path in folder.iterdir()) < 20e6
    match = match_gpt(folder)
    assert (match.complete, match.wanted) == (True, 441_018_563)
    assert sum(weight.numel() for weight in load_gpt(folder).parameters()) == match.wanted
