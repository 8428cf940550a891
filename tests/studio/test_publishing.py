"""Published models are small and complete, and speak the same in plain coqui-tts."""

import copy
import dataclasses
import json
import shutil
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.xtts.exporting import RUN, STEP, State, finished_run, plain_model, speak_codes, trained_state, with_adapter
from utils.core.errors import StorageError
from utils.integrations.ebook2audiobook import pack_model
from utils.speech.loading import Companions, LoadedModel, open_model
from utils.studio.amharic_wheel import wheel_name
from utils.studio.facts import InputError
from utils.studio.models import find_model
from utils.studio.paths import Project
from utils.studio.publishing import PublishedModel, PublishOptions, publish, publish_adapter
from utils.xtts.facts import ModelFileError
from utils.xtts.model import read_state_dict
from utils.xtts.portable import with_alias
from utils.xtts.tokenizer import Tokenizer

CODES = torch.arange(0, 1000, 25)
PUBLISHED_FILES = {
    "model.pth", "config.json", "vocab.json", "text.json", "speakers_xtts.pth", "reference.wav", "about.json",
    "files.json", "README.md", wheel_name(),
}  # fmt: skip

pytestmark = pytest.mark.slow


def aliased(state: State, tokenizer: Tokenizer) -> State:
    """Return the weights of an export, in which Amharic also stands at the language of its alias."""
    return with_alias(state, tokenizer.vocabulary, "am", "hi")


@pytest.fixture(scope="module")
def state(tiny_folder: Path, amharic: Tokenizer) -> State:
    return trained_state(tiny_folder, amharic)


@pytest.fixture(scope="module")
def project(tiny_folder: Path, amharic: Tokenizer, state: State, tmp_path_factory: pytest.TempPathFactory) -> Project:
    folder = tmp_path_factory.mktemp("project")
    finished_run(folder, tiny_folder, amharic, state)
    return Project(folder)


@pytest.fixture(scope="module")
def ready(project: Project) -> LoadedModel:
    return open_model(project.ready)


@pytest.fixture(scope="module")
def half(ready: LoadedModel, tmp_path_factory: pytest.TempPathFactory) -> PublishedModel:
    folder = tmp_path_factory.mktemp("exports") / "voice"
    return publish(ready, folder, PublishOptions(safetensors=True, zip=True), "# A card\n")


def gpt_of(folder: Path) -> State:
    return {name: weight for name, weight in read_state_dict(folder / "model.pth").items() if name.startswith("gpt.")}


def test_the_folder_is_complete(half: PublishedModel, state: State, amharic: Tokenizer, tiny_folder: Path) -> None:
    assert {path.name for path in half.folder.iterdir()} == PUBLISHED_FILES | {"model.safetensors"}
    assert (half.folder / "README.md").read_text() == "# A card\n"
    assert half.after == sum(path.stat().st_size for path in half.folder.iterdir())
    weights = gpt_of(half.folder)
    assert all(torch.equal(weights[f"gpt.{name}"], weight.half()) for name, weight in aliased(state, amharic).items())
    about = json.loads((half.folder / "about.json").read_text())
    assert (about["run"], about["step"], about["base"], about["precision"]) == (RUN, STEP, "tiny-random", "half")
    text = "".join(path.read_text() for path in half.folder.iterdir() if path.suffix in {".json", ".md"})
    assert str(tiny_folder.parent) not in text


def test_safetensors_and_zip_hold_the_same(half: PublishedModel, tmp_path: Path) -> None:
    safe, usual = load_file(half.folder / "model.safetensors"), read_state_dict(half.folder / "model.pth")
    assert safe.keys() == usual.keys()
    assert all(torch.equal(safe[name], weight) for name, weight in usual.items())
    assert half.archive == half.folder.parent / "voice.zip"
    with zipfile.ZipFile(half.archive) as archive:
        archive.extractall(tmp_path)
    unpacked = {path.name: path.read_bytes() for path in (tmp_path / "voice").iterdir()}
    assert unpacked == {path.name: path.read_bytes() for path in half.folder.iterdir()}


def test_ebook2audiobook_gets_its_four_files(half: PublishedModel, tmp_path: Path) -> None:
    with zipfile.ZipFile(pack_model(half.folder, tmp_path / "book.zip")) as archive:
        assert sorted(archive.namelist()) == ["config.json", "model.pth", "ref.wav", "vocab.json"]
        assert archive.read("ref.wav") == (half.folder / "reference.wav").read_bytes()
        archive.extractall(tmp_path / "model")
    assert plain_model(tmp_path / "model").gpt is not None


def test_plain_coqui_speaks_the_same(
    ready: LoadedModel, half: PublishedModel, project: Project, tmp_path: Path
) -> None:
    full = publish(ready, tmp_path / "voice", PublishOptions(half=False), "")
    expected = speak_codes(plain_model(project.ready), CODES)
    assert torch.equal(speak_codes(plain_model(full.folder), CODES), expected)
    assert expected.abs().max() > 0
    assert (expected - speak_codes(plain_model(half.folder), CODES)).abs().max() < 2e-3 * expected.abs().max()


def test_an_adapter_is_merged_or_published_alone(tiny_folder: Path, amharic: Tokenizer, tmp_path: Path) -> None:
    checkpoint, merged = with_adapter(tmp_path / "runs" / RUN, tiny_folder, amharic)
    opened = open_model(find_model(checkpoint), merge=True)
    whole = publish(opened, tmp_path / "whole", PublishOptions(half=False), "")
    weights = gpt_of(whole.folder)
    assert all(
        torch.allclose(weights[f"gpt.{name}"], weight, atol=1e-6) for name, weight in aliased(merged, amharic).items()
    )
    alone = publish_adapter(opened, tmp_path / "alone", PublishOptions(half=False, zip=True), "# A card")
    assert {path.name for path in alone.folder.iterdir()} == {
        "adapter.safetensors", "adapter.json", "vocab.json", "text.json", "README.md",
    }  # fmt: skip
    opened_again = open_model(alone.folder, Companions(tiny_folder)).gpt.state_dict()
    assert all(torch.allclose(opened_again[name], weight, atol=1e-6) for name, weight in merged.items())
    small = publish_adapter(opened, tmp_path / "small", PublishOptions(), "")
    assert small.after < alone.after < whole.after


def test_a_model_that_an_export_cannot_hold_is_refused(ready: LoadedModel, tmp_path: Path) -> None:
    gpt = copy.deepcopy(ready.gpt)
    gpt.get_submodule("mel_head").get_parameter("bias").data.fill_(1e6)
    with pytest.raises(ModelFileError, match="mel_head"):
        publish(dataclasses.replace(ready, gpt=gpt), tmp_path / "voice", PublishOptions(), "")
    with pytest.raises(InputError, match="no adapter"):
        publish_adapter(ready, tmp_path / "alone", PublishOptions(), "")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("where", ["ready", ".", "a file", "full"])
def test_other_files_are_not_overwritten(ready: LoadedModel, project: Project, tmp_path: Path, where: str) -> None:
    (tmp_path / "a file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "README.md").write_text("mine")
    folder = tmp_path / where if where in {"a file", "full"} else project.root / where
    with pytest.raises(StorageError, match="Choose"):
        publish(ready, folder, PublishOptions(), "")
    assert (project.ready / "model.pth").is_file()
    assert (tmp_path / "a file").read_text() == (tmp_path / "full" / "README.md").read_text() == "mine"


def test_an_export_replaces_only_its_own_files(ready: LoadedModel, tmp_path: Path) -> None:
    publish(ready, tmp_path / "voice", PublishOptions(safetensors=True), "old")
    (tmp_path / "voice" / "mine.txt").write_text("mine")
    (tmp_path / "voice" / wheel_name()).rename(tmp_path / "voice" / "amharic_text-1.1.0-py3-none-any.whl")
    publish(ready, tmp_path / "voice", PublishOptions(), "new")
    assert {path.name for path in (tmp_path / "voice").iterdir()} == PUBLISHED_FILES | {"mine.txt"}
    assert [path.name for path in tmp_path.iterdir()] == ["voice"]


def test_a_full_disk_is_refused_before_writing(
    ready: LoadedModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**9, 10**9, 10**6))
    with pytest.raises(StorageError, match="1 MB are free"):
        publish(ready, tmp_path / "voice", PublishOptions(), "")
    assert list(tmp_path.iterdir()) == []
