"""Pushing a model: only with a token of the environment, which is told to the hub alone."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.xtts.upload_hub import UploadHub, taking
from utils.core.errors import ConfigError
from utils.workspace.hub_upload import UploadError, check_push, push

TOKEN = "hf_secretsecretsecret"


@pytest.fixture
def hub() -> Iterator[UploadHub]:
    with taking(UploadHub(TOKEN)) as found:
        yield found


@pytest.fixture
def model(tmp_path: Path) -> Path:
    for name in ("model.pth", "README.md", "config.json", "mine.txt", ".hidden"):
        (tmp_path / name).write_text(f"content of {name}")
    return tmp_path


@pytest.mark.parametrize("public", [False, True])
def test_the_files_of_the_model_arrive_and_no_others(
    hub: UploadHub, model: Path, public: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    caplog.set_level(logging.DEBUG)
    assert push(model, "somebody/voice", public=public, endpoint=hub.endpoint).endswith("/somebody/voice/commit/1")
    assert hub.repositories == {"somebody/voice": "public" if public else "private"}
    assert {path for _, path in hub.files} == {"model.pth", "README.md", "config.json"}
    assert hub.files["somebody/voice", "model.pth"] == b"content of model.pth"
    assert (hub.tokens, hub.unknown) == ({TOKEN}, [])
    assert TOKEN not in caplog.text


def test_pushing_again_changes_what_is_there(hub: UploadHub, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    for content in ("old", "new"):
        (model / "model.pth").write_text(content)
        push(model, "somebody/voice", endpoint=hub.endpoint)
    assert hub.files["somebody/voice", "model.pth"] == b"new"


@pytest.mark.parametrize("name", ["voice", "a/b/c", "", "owner/", "/voice", "owner/na me"])
def test_a_name_without_an_owner_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(ConfigError, match=r"is no name on the hub. Write it as owner/name."):
        check_push(name)


def test_without_a_token_nothing_is_tried(hub: UploadHub, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="HF_TOKEN is not set"):
        push(model, "somebody/voice", endpoint=hub.endpoint)
    assert hub.tokens == set()


def test_a_token_that_may_not_write_is_not_shown(
    hub: UploadHub, model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HF_TOKEN", f"{TOKEN}x")
    caplog.set_level(logging.DEBUG)
    with pytest.raises(UploadError, match=r"somebody/voice could not be pushed: .*HF_TOKEN") as caught:
        push(model, "somebody/voice", endpoint=hub.endpoint)
    assert TOKEN not in f"{caught.value}{caplog.text}"
    assert hub.files == {}


def test_a_hub_that_cannot_be_reached_is_said_in_a_sentence(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with pytest.raises(UploadError, match="Check the connection"):
        push(model, "somebody/voice", endpoint="http://127.0.0.1:9")
