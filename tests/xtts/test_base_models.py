import hashlib
import json
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch

from tests.xtts.hub_server import Hub, serving
from utils.core.errors import DownloadError
from utils.core.facts import Progress
from utils.xtts import base_models
from utils.xtts.base_models import ModelSource, base_folder
from utils.xtts.facts import LicenceError, ModelFileError, UnreachableError
from utils.xtts.files import HUB_FILES, TINY
from utils.xtts.hub import LICENCE, VARIABLE, accept_licence, licence_accepted
from utils.xtts.model import match_gpt, read_state_dict, require_match

if TYPE_CHECKING:
    from utils.core.facts import Fact

pytestmark = pytest.mark.slow
PUBLISHED = [name for name in HUB_FILES if name not in base_models.ADDED_LATER]


@pytest.fixture(scope="module")
def hub(tiny_folder: Path) -> Iterator[Hub]:
    """Serve the tiny model as v2.0.2, which lacks the files that came later."""
    files = {("main", name): (tiny_folder / name).read_bytes() for name in HUB_FILES}
    files |= {("v2.0.2", name): (tiny_folder / name).read_bytes() for name in PUBLISHED}
    with serving(Hub(files)) as served:
        yield served


@pytest.fixture(autouse=True)
def fresh(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget earlier tests, and retry without a pause."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1 << 16)  # a test file is smaller than one
    hub.requests.clear()
    hub.hang_up.clear()
    hub.announced.clear()


@pytest.fixture
def source(tmp_path: Path, hub: Hub) -> ModelSource:
    consent = tmp_path / "consent.json"
    accept_licence(consent, "Abebe")
    return ModelSource(tmp_path / "models", consent, hub.endpoint)


@pytest.fixture
def offline(tmp_path: Path) -> ModelSource:
    return ModelSource(tmp_path / "models", tmp_path / "none", "http://127.0.0.1:9")


def same_files(folder: Path, other: Path, names: Sequence[str] = HUB_FILES) -> bool:
    return all((folder / name).read_bytes() == (other / name).read_bytes() for name in names)


def test_a_version_is_fetched_once(source: ModelSource, hub: Hub, tiny_folder: Path) -> None:
    folder = base_folder("v2.0.2", source=source)
    assert same_files(folder, tiny_folder)
    assert {path.name for path in folder.iterdir()} == {*HUB_FILES, "verified.json"}
    fetched = {(revision, name) for method, revision, name, _ in hub.requests if method == "GET"}
    assert fetched == {("v2.0.2", name) for name in PUBLISHED} | {("main", name) for name in base_models.ADDED_LATER}
    hub.requests.clear()
    assert base_folder("v2.0.2", source=source) == folder
    assert hub.requests == []


def test_progress_counts_the_bytes_of_all_files(
    source: ModelSource, tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base_models, "PROGRESS_SECONDS", -1.0)
    facts: list[Fact] = []
    base_folder("main", source=replace(source, report=facts.append))
    steps = [fact for fact in facts if isinstance(fact, Progress)]
    assert any(step.seconds_left is not None for step in steps)
    total = sum((tiny_folder / name).stat().st_size for name in HUB_FILES)
    assert {(step.part, step.total) for step in steps} == {(name, total) for name in HUB_FILES}
    done = [step.step for step in steps]
    assert (done, done[-1]) == (sorted(done), total)


def test_a_broken_connection_is_tried_again(source: ModelSource, hub: Hub, tiny_folder: Path) -> None:
    hub.hang_up |= {"config.json": 1, "model.pth": 1}
    assert same_files(base_folder("main", source=source), tiny_folder)
    assert set(hub.hang_up.values()) == {0}


@pytest.mark.parametrize("damaged", [False, True])
def test_a_killed_download_is_resumed_unless_its_half_is_damaged(
    source: ModelSource, hub: Hub, tiny_folder: Path, damaged: bool
) -> None:
    content = (tiny_folder / "model.pth").read_bytes()
    partial = source.models / "main" / f".model.pth.{hashlib.sha256(content).hexdigest()[:16]}.partial"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(bytes(100_000) if damaged else content[:100_000])
    if damaged:
        with pytest.raises(DownloadError, match=r"model\.pth"):
            base_folder("main", source=source)
    assert same_files(base_folder("main", source=source), tiny_folder)
    assert ("GET", "main", "model.pth", "bytes=100000-") in hub.requests


@pytest.mark.parametrize("name", ["model.pth", "vocab.json"])
def test_a_file_with_a_wrong_hash_is_not_saved(source: ModelSource, hub: Hub, name: str) -> None:
    hub.announced[name] = "0" * (40 if name == "vocab.json" else 64)
    with pytest.raises(DownloadError, match=re.escape(name)) as raised:
        base_folder("main", source=source)
    assert raised.value.hint
    assert not (source.models / "main" / name).exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [("model.pth", b"version https://git-lfs.github.com/spec/v1\noid sha256:0"), ("config.json", b"")],
)
def test_a_damaged_file_is_downloaded_again(
    source: ModelSource, hub: Hub, tiny_folder: Path, name: str, content: bytes
) -> None:
    folder = base_folder("main", source=source)
    (folder / name).write_bytes(content)
    hub.requests.clear()
    assert same_files(base_folder("main", source=source), tiny_folder)
    assert hub.downloads() == [name]


def test_nothing_is_requested_without_consent(source: ModelSource, hub: Hub) -> None:
    source.consent.unlink()
    with pytest.raises(LicenceError) as raised:
        base_folder("main", source=source)
    assert (raised.value.licence, raised.value.variable) == (LICENCE, VARIABLE)
    assert hub.requests == []


def test_whole_files_copied_by_hand_need_no_consent(source: ModelSource, hub: Hub, tiny_folder: Path) -> None:
    source.consent.unlink()
    folder = shutil.copytree(tiny_folder, source.models / "main")
    assert base_folder("main", source=source) == folder
    assert json.loads((folder / "verified.json").read_text())["content"].keys() == set(HUB_FILES)
    content = bytearray((folder / "model.pth").read_bytes())
    content[-1000] ^= 1
    (folder / "model.pth").write_bytes(content)
    with pytest.raises(LicenceError):
        base_folder("main", source=source)
    assert hub.downloads() == []


@pytest.mark.parametrize(
    ("stored", "accepted"),
    [("", False), ("[1]", False), ('{"licence": "another"}', False), (json.dumps({"licence": LICENCE}), True)],
)
def test_consent_is_a_stored_file_or_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: str, accepted: bool
) -> None:
    path = tmp_path / "consent.json"
    path.write_text(stored)
    assert licence_accepted(path) == accepted
    monkeypatch.setenv(VARIABLE, "1")
    assert licence_accepted(tmp_path / "missing.json")


def test_without_a_connection_files_that_look_complete_are_used(
    source: ModelSource, offline: ModelSource, tiny_folder: Path
) -> None:
    offline = replace(offline, consent=source.consent)
    with pytest.raises(UnreachableError) as raised:
        base_folder("v2.0.3", source=offline)
    assert HUB_FILES[0] in raised.value.name
    folder = shutil.copytree(tiny_folder, offline.models / "v2.0.3", dirs_exist_ok=True)
    assert base_folder("v2.0.3", source=offline) == folder
    (folder / "model.pth").write_bytes(b"\0" * 68)
    with pytest.raises(UnreachableError):
        base_folder("v2.0.3", source=offline)


def test_the_embedded_voice_needs_neither_consent_nor_connection(offline: ModelSource) -> None:
    folder = base_folder(TINY, source=offline)
    assert {path.name for path in folder.iterdir()} > set(HUB_FILES)
    assert require_match(match_gpt(folder), folder).complete


def test_a_complete_folder_of_a_user_is_used_in_place(offline: ModelSource, tiny_folder: Path) -> None:
    assert base_folder("v2.0.2", offline, str(tiny_folder)) == tiny_folder
    assert base_folder("v2.0.2", offline, f"{tiny_folder / 'model.pth'} ") == tiny_folder
    assert not offline.models.exists()


@pytest.mark.parametrize("given", ["folder", "file", "file alone"])
def test_a_checkpoint_of_coquis_trainer_gets_what_it_lacks_from_the_version(
    tmp_path: Path, source: ModelSource, hub: Hub, tiny_folder: Path, given: str
) -> None:
    path = tmp_path / "run" / "best_model.pth"
    path.parent.mkdir()
    state = {f"xtts.{name}": weight for name, weight in read_state_dict(tiny_folder / "model.pth").items()}
    torch.save({"model": state, "step": 7, "model_loss": {"train_loss": 1.0, "eval_loss": None}}, path)
    for name in ("config.json", "vocab.json") if given != "file alone" else ():
        shutil.copy(tiny_folder / name, path.parent)
    custom = str(path.parent if given == "folder" else path)
    folder = base_folder("v2.0.2", source, custom)
    assert match_gpt(folder).complete
    assert same_files(folder, tiny_folder, HUB_FILES[1:])
    assert set(hub.downloads()) == set(HUB_FILES[1:] if given == "file alone" else base_models.ADDED_LATER)
    assert base_folder("v2.0.2", source, custom) == folder


def test_a_gpt_without_a_vocoder_is_refused(tmp_path: Path, offline: ModelSource, tiny_folder: Path) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    weights = read_state_dict(folder / "model.pth").items()
    torch.save({name: weight.clone() for name, weight in weights if "gpt." in name}, folder / "model.pth")
    with pytest.raises(ModelFileError) as raised:
        base_folder("v2.0.2", offline, str(folder))
    assert raised.value.problem == "no_vocoder"


def test_a_folder_without_needed_files_is_refused(tmp_path: Path, offline: ModelSource, tiny_folder: Path) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    for name, message in {
        "config.json": "config.json",
        "vocab.json": "vocab.json",
        "model.pth": "model.pth",
    }.items():
        (folder / name).unlink()
        with pytest.raises(ModelFileError, match=re.escape(message)):
            base_folder("v2.0.2", offline, str(folder))
