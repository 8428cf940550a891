"""How the page is started and served: password, port and refused requests."""

import argparse
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.ui.serving import serving
from utils.__main__ import main
from utils.cli import page as command
from utils.core.errors import ConfigError
from utils.core.paths import ROOT
from utils.server.page import Credentials, credentials, page_token


def test_an_exposed_page_has_a_password() -> None:
    assert credentials("", exposed=False) is None
    passwords = {account.password for _ in range(2) if (account := credentials("", exposed=True))}
    assert len(passwords) == 2
    assert all(len(password) >= 12 for password in passwords)
    assert credentials("abebe:a:b", exposed=True) == Credentials("abebe", "a:b")


def test_half_a_login_is_refused() -> None:
    for auth in ("abebe", "abebe:", ":secret", ":"):
        with pytest.raises(ConfigError, match="user:password"):
            credentials(auth, exposed=True)


def test_the_token_outlives_a_restart_unless_others_could_read_it(tmp_path: Path) -> None:
    token = page_token(tmp_path)
    assert page_token(tmp_path) == token
    path = tmp_path / ".settings" / "page-token"
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    assert page_token(tmp_path) != token
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("short", encoding="ascii")
    assert len(page_token(tmp_path)) >= 40


@pytest.mark.parametrize(
    ("is_terminal", "display", "opens"), [(True, ":0", True), (True, "", False), (False, ":0", False)]
)
def test_a_browser_is_opened_only_for_a_person_at_a_screen(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, display: str, opens: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("DISPLAY", display)
    assert command.has_screen() is opens


def test_without_a_folder_for_it_the_token_is_for_this_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert page_token(tmp_path / "file") != page_token(tmp_path / "file")


REFUSED_TWICE = """import sys
from utils.__main__ import main
print(main(["page", "--auth", "nobody"]), "gradio" in sys.modules)
print(main(["page", "--output", sys.executable]))  # not a folder
"""


@pytest.mark.slow
def test_a_wrong_password_is_refused_before_the_import_of_gradio() -> None:
    words = [sys.executable, "-c", REFUSED_TWICE]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "user:password" in done.stderr
    assert done.stdout.replace("Starting the page ...", "").split() == ["1", "False", "1"], done.stderr


def test_the_page_is_for_this_computer_by_default() -> None:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    arguments = parser.parse_args([])
    assert (arguments.host, arguments.port, arguments.share) == ("127.0.0.1", 7860, False)


@pytest.mark.parametrize("word", ["0", "65536", "many", "²"])
def test_the_page_needs_a_valid_port(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["page", f"--port={word}"])
    assert "1-65535" in capsys.readouterr().err


@pytest.mark.slow
def test_an_exposed_page_on_another_port_asks_for_its_password(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        taken = other.getsockname()[1]
        with serving(tmp_path / "output", "--host", "0.0.0.0", "--port", str(taken)) as page:
            assert page.lines[1] == f"Port {taken} is in use; the page is at {page.url}\n"
            password = page.wait_for(r"user amharic, password (\S+)")
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"http://127.0.0.1:{urlsplit(page.url).port}/config", timeout=10)
            assert len(password) >= 12
