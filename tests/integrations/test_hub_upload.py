"""Uploading to the hub, with a token from the environment that is never shown."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.xtts.upload_hub import UploadHub, taking
from utils.core.errors import ConfigError
from utils.integrations.hub import push, require_token
from utils.studio.facts import UploadError

TOKEN = "hf_secretsecretsecret"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[UploadHub]:
    """A hub that accepts the token of the environment; everything is logged."""
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    caplog.set_level(logging.DEBUG)
    with taking(UploadHub(TOKEN)) as running:
        yield running


@pytest.fixture
def model(tmp_path: Path) -> Path:
    for name in ("model.pth", "README.md", "config.json", "mine.txt", ".hidden"):
        (tmp_path / name).write_text(f"content of {name}")
    return tmp_path


@pytest.mark.parametrize("public", [False, True])
def test_only_the_files_of_the_model_are_uploaded(
    hub: UploadHub, model: Path, public: bool, caplog: pytest.LogCaptureFixture
) -> None:
    assert push(model, "somebody/voice", public=public, endpoint=hub.endpoint).endswith("/somebody/voice/commit/1")
    assert hub.repositories == {"somebody/voice": "public" if public else "private"}
    assert {path for _, path in hub.files} == {"model.pth", "README.md", "config.json"}
    assert hub.files["somebody/voice", "model.pth"] == b"content of model.pth"
    assert (hub.tokens, hub.unknown) == ({TOKEN}, [])
    assert TOKEN not in caplog.text


def test_nothing_is_sent_without_a_token_or_an_owner(
    hub: UploadHub, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("voice", "a/b/c", "owner/", "owner/na me"):
        with pytest.raises(ConfigError, match="owner/name"):
            require_token(name)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(ConfigError, match="HF_TOKEN"):
        push(model, "somebody/voice", endpoint=hub.endpoint)
    assert hub.tokens == set()


def test_a_token_without_write_access_is_not_shown(
    hub: UploadHub, model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HF_TOKEN", f"{TOKEN}x")
    with pytest.raises(UploadError, match="somebody/voice") as raised:
        push(model, "somebody/voice", endpoint=hub.endpoint)
    assert TOKEN not in f"{raised.value}{caplog.text}"
    assert hub.files == {}


@pytest.mark.usefixtures("hub")
def test_an_unreachable_hub_is_reported(model: Path) -> None:
    with pytest.raises(UploadError, match="somebody/voice"):
        push(model, "somebody/voice", endpoint="http://127.0.0.1:9")
