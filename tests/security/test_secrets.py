"""Passwords, keys and tokens: not in what runs write, not in messages, not in the list of processes."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

import utils.ui
from tests.run_kinds.count import CountConfig
from tests.security.test_settings_of_paths import CONFIGS
from tests.worded import worded
from utils.__main__ import main
from utils.cli.page import VARIABLE
from utils.config import DatasetConfig
from utils.config.base import Config
from utils.core.errors import ConfigError
from utils.server import auth
from utils.server import page as page_server
from utils.studio import runs
from utils.studio.paths import Project

SECRET = "s3cret-that-nobody-else-shall-read"
VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "WANDB_API_KEY", auth.KEY_VARIABLE, VARIABLE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "config", "status"),
    [
        ("count", CountConfig(seconds=0.5, ticks_per_second=20), "finished"),
        ("prepare", DatasetConfig(inputs="/nowhere/at/all"), "failed"),
    ],
)
def test_a_run_writes_no_secret_of_its_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, config: Config, status: runs.Status
) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, SECRET)
    run = runs.start(verb, config, Project(tmp_path)).run
    pid = run.current_state().pid  # every user of the computer can read the command line of a process
    assert not psutil.pid_exists(pid) or SECRET not in " ".join(psutil.Process(pid).cmdline())
    while (state := run.current_state()).status in runs.ACTIVE:
        psutil.wait_procs([psutil.Process(state.pid)] if psutil.pid_exists(state.pid) else [], timeout=0.1)
    assert state.status == status
    written = {path.name: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {"config.yaml", "state.json", "events.jsonl", "log.txt"} <= written.keys()
    assert [name for name, content in written.items() if SECRET.encode() in content] == []


def test_no_setting_holds_a_secret() -> None:
    """Settings are written to config.yaml and shown in commands; a secret is in a file or a variable."""
    words = ("password", "secret", "key", "hf_token", "auth")
    names = [name for kind in CONFIGS for name in kind.model_fields]
    assert [name for name in names if any(word in name for word in words)] == ["api_key_file"]


@pytest.mark.parametrize("password", [SECRET, f"{SECRET}:", f":{SECRET}"])
def test_a_refused_password_is_not_repeated(password: str) -> None:
    with pytest.raises(ConfigError) as caught:
        page_server.credentials(password, exposed=True)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("key", ["short-one", f"{SECRET} with spaces", f"{SECRET}\u1230"])
def test_a_refused_key_is_not_repeated(tmp_path: Path, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "key").write_text(key, encoding="utf-8")
    monkeypatch.setenv(auth.KEY_VARIABLE, key)
    for path in (str(tmp_path / "key"), ""):
        with pytest.raises(ConfigError) as caught:
            auth.api_key(path, "localhost")
        assert key not in str(caught.value)


def test_the_password_of_the_page_goes_no_further_than_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    accounts: list[page_server.Credentials] = []

    def launch(*_: object, who: page_server.Credentials, **__: object) -> None:
        accounts.append(who)
        raise worded(ConfigError, "Far enough.")

    page = SimpleNamespace(launch=launch)
    monkeypatch.setattr(utils.ui, "app", page, raising=False)
    monkeypatch.setitem(sys.modules, "utils.ui.app", page)
    monkeypatch.setenv(VARIABLE, f"abebe:{SECRET}")
    assert main(["page", "--share"]) == 1
    (who,) = accounts
    assert (who.user, who.password, who.generated) == ("abebe", SECRET, False)
    assert VARIABLE not in os.environ
