"""Passwords, keys and tokens: not in what runs write, not in messages, not in the list of processes."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

import utils.ui
import xtts_demo
from tests.security.test_settings_of_paths import CONFIGS
from utils import runs
from utils.config import DatasetConfig, RehearsalConfig
from utils.config.base import Config
from utils.core.errors import ConfigError
from utils.core.paths import Project
from utils.server import auth
from utils.ui import gradio_server

SECRET = "s3cret-that-nobody-else-shall-read"
VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "WANDB_API_KEY", auth.KEY_VARIABLE, xtts_demo.VARIABLE)


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set every variable that holds a secret."""
    for name in VARIABLES:
        monkeypatch.setenv(name, SECRET)


def command_of(pid: int) -> str:
    """The command line of a process, which every user of the computer can read; empty once it has ended."""
    return " ".join(psutil.Process(pid).cmdline()) if psutil.pid_exists(pid) else ""


def wait_for_end(run: runs.Run) -> runs.State:
    while (state := run.current_state()).status in runs.ACTIVE:
        psutil.wait_procs([psutil.Process(state.pid)] if psutil.pid_exists(state.pid) else [], timeout=0.1)
    return state


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "config", "status"),
    [
        ("rehearse", RehearsalConfig(seconds=0.5, ticks_per_second=20), runs.Status.FINISHED),
        ("prepare", DatasetConfig(inputs="/nowhere/at/all"), runs.Status.FAILED),
    ],
)
def test_a_run_writes_no_secret_of_its_environment(
    tmp_path: Path, secrets: None, verb: str, config: Config, status: runs.Status
) -> None:
    run = runs.start(verb, config, Project(tmp_path))
    assert SECRET not in command_of(run.current_state().pid)
    assert wait_for_end(run).status is status
    written = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"config.yaml", "state.json", "events.jsonl", "log.txt"} <= written.keys()
    assert [name for name, content in written.items() if SECRET.encode() in content] == []


def test_no_setting_and_so_no_flag_holds_a_secret() -> None:
    """Settings are written to config.yaml and shown in commands; a secret is in a file or a variable."""
    words = ("password", "secret", "key", "hf_token", "auth")
    names = [name for kind in CONFIGS for name in kind.model_fields]
    assert [name for name in names if any(word in name for word in words)] == ["api_key_file"]


@pytest.mark.parametrize("given", [SECRET, f"{SECRET}:", f":{SECRET}"])
def test_a_password_that_is_refused_is_not_repeated(given: str) -> None:
    with pytest.raises(ConfigError) as caught:
        gradio_server.credentials(given, exposed=True)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("key", ["short-one", f"{SECRET} with spaces", f"{SECRET}\u1230"])
def test_a_key_that_is_refused_is_not_repeated(tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text(key, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        auth.api_key(str(tmp_path / "key"), "localhost")
    monkeypatch.setenv(auth.KEY_VARIABLE, key)
    with pytest.raises(ConfigError) as again:
        auth.api_key("", "localhost")
    assert key not in f"{caught.value}{again.value}"


def opened(monkeypatch: pytest.MonkeyPatch, *words: str) -> gradio_server.Credentials:
    """Start the page as far as its gradio; return who may come in."""
    asked: list[gradio_server.Credentials] = []

    def launch(*_: object, who: gradio_server.Credentials, **__: object) -> None:
        asked.append(who)
        raise ConfigError("Far enough.")

    page = SimpleNamespace(launch=launch)
    monkeypatch.setattr(utils.ui, "app", page, raising=False)
    monkeypatch.setitem(sys.modules, "utils.ui.app", page)
    assert xtts_demo.main(words) == 1
    return asked[0]


def test_the_password_of_the_page_can_stand_in_a_variable_and_goes_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(xtts_demo.VARIABLE, f"abebe:{SECRET}")
    who = opened(monkeypatch, "--share")
    assert (who.user, who.password, who.generated) == ("abebe", SECRET, False)
    assert xtts_demo.VARIABLE not in os.environ
