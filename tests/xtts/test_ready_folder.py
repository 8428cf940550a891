import json
import shutil
from pathlib import Path

import pytest
import soundfile
import torch

from testing import random_model
from tests.xtts.exporting import plain_model
from utils.core import folders
from utils.core.errors import StorageError
from utils.media import audio
from utils.xtts import export
from utils.xtts.codec import AudioEncoder
from utils.xtts.export import write_ready
from utils.xtts.facts import ModelFileError
from utils.xtts.model import load_gpt
from utils.xtts.tokenizer import Tokenizer

State = dict[str, torch.Tensor]
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def trained(tiny_folder: Path, amharic: Tokenizer) -> State:
    """Weights that are not those of the base."""
    return {name: weight + 0.01 for name, weight in load_gpt(tiny_folder, amharic).state_dict().items()}


@pytest.fixture(scope="module")
def ready(tiny_folder: Path, amharic: Tokenizer, trained: State, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    soundfile.write(folder / "voice.flac", random_model.synthetic_speech(1.0, 3), 22_050)
    return write_ready(folder / "ready", tiny_folder, trained, amharic, folder / "voice.flac", {"steps": 20})


def test_it_holds_all_that_speech_and_further_training_need(ready: Path) -> None:
    assert {path.name for path in ready.iterdir()} == set(export.EXPORTED_FILES)
    about = json.loads((ready / "about.json").read_text())
    assert (about["steps"], about["base"], about["precision"]) == (20, "tiny-random", "full")
    assert soundfile.info(ready / "reference.wav").format == "WAV"
    assert audio.duration(ready / "reference.wav") == pytest.approx(1.0)


def assert_equal(weights: State, expected: State) -> None:
    assert all(torch.equal(weights[name], weight) for name, weight in expected.items())


def test_plain_coqui_and_further_training_load_it_with_every_key(
    ready: Path, tiny_folder: Path, trained: State
) -> None:
    model, tokenizer = plain_model(ready), Tokenizer.load(ready)
    assert model.config.languages[-1] == "am"
    assert_equal(model.gpt.state_dict(), trained)
    assert_equal(model.hifigan_decoder.state_dict(), plain_model(tiny_folder).hifigan_decoder.state_dict())
    assert_equal(load_gpt(ready, tokenizer).state_dict(), trained)
    assert tokenizer.encode("ሰላም", "am")
    assert AudioEncoder.load(ready).fingerprint == AudioEncoder.load(tiny_folder).fingerprint


def test_plain_coqui_speaks_with_voices_that_the_base_stored_in_half_precision(
    tiny_folder: Path, amharic: Tokenizer, trained: State, tmp_path: Path
) -> None:
    base = shutil.copytree(tiny_folder, tmp_path / "base")
    stored = torch.load(base / "speakers_xtts.pth", weights_only=True)
    torch.save(
        {name: {key: part.half() for key, part in voice.items()} for name, voice in stored.items()},
        base / "speakers_xtts.pth",
    )
    model = plain_model(write_ready(tmp_path / "ready", base, trained, amharic, None, {}))
    for speaker in stored:
        assert len(model.synthesize("hello", speaker=speaker, language="en", max_new_tokens=8)["wav"])


def test_other_weights_change_nothing(tiny_folder: Path, amharic: Tokenizer, trained: State, tmp_path: Path) -> None:
    folder = tmp_path / "ready"
    folder.mkdir()
    (folder / "model.pth").write_text("old")
    for state in (trained | {"lora_a": torch.ones(1)}, load_gpt(tiny_folder).state_dict()):
        with pytest.raises(ModelFileError) as caught:
            write_ready(folder, tiny_folder, state, amharic, None, {})
        assert caught.value.problem == "mismatch"
    assert [path.name for path in tmp_path.rglob("*")] == ["ready", "model.pth"]


def test_only_the_files_of_the_old_model_are_replaced(
    tiny_folder: Path, amharic: Tokenizer, trained: State, tmp_path: Path
) -> None:
    folder = tmp_path / "ready"
    write_ready(folder, tiny_folder, trained, amharic, None, {"steps": 1})
    (folder / "notes").mkdir()
    (folder / "notes" / "mine.txt").write_text("kept")
    (folder / "voice.wav").write_text("kept")
    write_ready(folder, folder, trained, amharic, None, {"steps": 2})  # from itself, as a continued training does
    assert json.loads((folder / "about.json").read_text())["steps"] == 2
    assert (folder / "notes" / "mine.txt").read_text() == (folder / "voice.wav").read_text() == "kept"
    assert [path.name for path in tmp_path.iterdir()] == ["ready"]
    assert (tiny_folder / "dvae.pth").is_file()


def test_a_disk_that_fills_up_leaves_the_old_model(
    tiny_folder: Path, amharic: Tokenizer, trained: State, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "require_space", lambda *_: None)
    folder = small_disk / "ready"
    folder.mkdir()
    (folder / "model.pth").write_text("old")
    with pytest.raises(StorageError, match="cannot be written"):
        write_ready(folder, tiny_folder, trained, amharic, None, {})
    assert [path.name for path in small_disk.rglob("*")] == ["ready", "model.pth"]


@pytest.mark.parametrize("after", ["old gone", "both there"])
def test_a_kill_between_the_two_renames_is_repaired_by_the_next_call(tmp_path: Path, after: str) -> None:
    folder, before = tmp_path / "ready", tmp_path / ".ready.old-1"
    before.mkdir()
    (before / "model.pth").write_text("old")
    (before / "mine.txt").write_text("mine")
    if after == "both there":
        folder.mkdir()
        (folder / "model.pth").write_text("new")
    with pytest.raises(RuntimeError), folders.replace_folder(folder, ours=["model.pth"]):
        raise RuntimeError
    assert (folder / "model.pth").read_text() == ("old" if after == "old gone" else "new")
    assert (folder / "mine.txt").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["ready"]
