import hashlib
import json
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.xtts.hub_server import Hub, serving
from utils.core.errors import DownloadError
from utils.xtts import base_models
from utils.xtts.base_models import DownloadProgress, ModelSource, base_folder
from utils.xtts.files import BUILT_IN, HUB_FILES, ModelFileError
from utils.xtts.hub import LICENCE, VARIABLE, LicenceError, UnreachableError, accept_licence, licence_accepted
from utils.xtts.model import match_gpt, read_state_dict, require_match

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
    accept_licence("Abebe", consent)
    return ModelSource(tmp_path / "models", consent, hub.endpoint)


@pytest.fixture
def offline(tmp_path: Path) -> ModelSource:
    return ModelSource(tmp_path / "models", tmp_path / "none", "http://127.0.0.1:9")


def same_files(one: Path, other: Path, names: Any = HUB_FILES) -> bool:
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


def test_a_version_is_fetched_whole_and_only_once(source: ModelSource, hub: Hub, tiny_folder: Path) -> None:
    folder = base_folder("v2.0.2", source=source)
    assert same_files(folder, tiny_folder)
    assert {path.name for path in folder.iterdir()} == {*HUB_FILES, "verified.json"}
    fetched = {(revision, name) for method, revision, name, _ in hub.requests if method == "GET"}
    assert fetched == {("v2.0.2", name) for name in PUBLISHED} | {("main", name) for name in base_models.ADDED_LATER}
    hub.requests.clear()
    assert base_folder("v2.0.2", source=source) == folder
    assert hub.requests == []


def test_progress_is_told_in_bytes_of_all_files(tmp_path: Path, source: ModelSource, tiny_folder: Path) -> None:
    steps: list[DownloadProgress] = []
    base_folder("main", source=ModelSource(source.models, source.consent, source.endpoint, steps.append))
    total = sum((tiny_folder / name).stat().st_size for name in HUB_FILES)
    assert {step.total for step in steps} == {total}
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert steps[-1].done == total
    assert {step.file for step in steps} == set(HUB_FILES)


@pytest.mark.parametrize("name", ["config.json", "model.pth"])
def test_a_hub_that_hangs_up_once_is_asked_again(source: ModelSource, hub: Hub, tiny_folder: Path, name: str) -> None:
    hub.hang_up[name] = 1
    assert same_files(base_folder("main", source=source), tiny_folder)
    assert hub.hang_up[name] == 0


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
def test_a_wrong_hash_is_refused_and_not_kept(source: ModelSource, hub: Hub, name: str) -> None:
    hub.announced[name] = "0" * (40 if name == "vocab.json" else 64)
    with pytest.raises(DownloadError, match=re.escape(name)) as raised:
        base_folder("main", source=source)
    assert raised.value.hint
    assert not (source.models / "main" / name).exists()


@pytest.mark.parametrize("content", [b"version https://git-lfs.github.com/spec/v1\noid sha256:0", b""])
@pytest.mark.parametrize("name", ["model.pth", "config.json"])
def test_a_damaged_file_is_found_and_fetched_again(
    source: ModelSource, hub: Hub, tiny_folder: Path, content: bytes, name: str
) -> None:
    folder = base_folder("main", source=source)
    (folder / name).write_bytes(content)
    hub.requests.clear()
    assert same_files(base_folder("main", source=source), tiny_folder)
    assert hub.downloads() == [name]


def test_without_consent_nothing_is_asked_for(source: ModelSource, hub: Hub) -> None:
    source.consent.unlink()
    with pytest.raises(LicenceError, match="non-commercial") as raised:
        base_folder("main", source=source)
    assert VARIABLE in raised.value.hint
    assert hub.requests == []


@pytest.mark.parametrize(
    ("stored", "variable", "accepted"),
    [
        (None, None, False),
        (None, "1", True),
        ("[1]", None, False),
        (json.dumps({"licence": "another"}), None, False),
        (json.dumps({"licence": LICENCE}), None, True),
    ],
)
def test_consent_is_a_stored_file_or_the_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: str | None, variable: str | None, accepted: bool
) -> None:
    path = tmp_path / "consent.json"
    if stored is not None:
        path.write_text(stored)
    if variable is not None:
        monkeypatch.setenv(VARIABLE, variable)
    assert licence_accepted(path) == accepted


def test_without_a_connection_files_that_look_whole_are_taken(
    source: ModelSource, offline: ModelSource, tiny_folder: Path
) -> None:
    offline = replace(offline, consent=source.consent)
    with pytest.raises(UnreachableError) as raised:
        base_folder("v2.0.3", source=offline)
    assert all(name in raised.value.hint for name in (*HUB_FILES, str(offline.models / "v2.0.3")))
    folder = shutil.copytree(tiny_folder, offline.models / "v2.0.3", dirs_exist_ok=True)
    assert base_folder("v2.0.3", source=offline) == folder
    (folder / "model.pth").write_bytes(b"\0" * 68)
    with pytest.raises(UnreachableError):
        base_folder("v2.0.3", source=offline)


@pytest.mark.parametrize("name", BUILT_IN)
def test_what_comes_with_the_program_needs_neither_consent_nor_connection(offline: ModelSource, name: str) -> None:
    folder = base_folder(name, source=offline)
    assert {path.name for path in folder.iterdir()} > set(HUB_FILES)
    assert require_match(match_gpt(folder), name).complete


def test_a_whole_folder_of_ones_own_is_used_where_it_is(offline: ModelSource, tiny_folder: Path) -> None:
    assert base_folder("v2.0.2", str(tiny_folder), offline) == tiny_folder
    assert base_folder("v2.0.2", f"{tiny_folder / 'model.pth'} ", offline) == tiny_folder
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
    folder = base_folder("v2.0.2", custom, source)
    assert match_gpt(folder).complete
    assert same_files(folder, tiny_folder, HUB_FILES[1:])
    assert set(hub.downloads()) == set(HUB_FILES[1:] if given == "file alone" else base_models.ADDED_LATER)
    assert base_folder("v2.0.2", custom, source) == folder


def test_a_gpt_without_a_vocoder_is_refused(tmp_path: Path, offline: ModelSource, tiny_folder: Path) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    weights = read_state_dict(folder / "model.pth").items()
    torch.save({name: weight.clone() for name, weight in weights if "gpt." in name}, folder / "model.pth")
    with pytest.raises(ModelFileError, match="vocoder"):
        base_folder("v2.0.2", str(folder), offline)


@pytest.mark.parametrize(
    ("missing", "key"),
    [(["model.pth"], r"model\.pth"), (["config.json", "vocab.json"], r"config\.json and no vocab\.json")],
)
def test_a_folder_that_is_no_model_is_named(
    tmp_path: Path, offline: ModelSource, tiny_folder: Path, missing: list[str], key: str
) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "model")
    for name in missing:
        (folder / name).unlink()
    with pytest.raises(ModelFileError, match=key):
        base_folder("v2.0.2", str(folder), offline)
