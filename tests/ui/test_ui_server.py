"""How the page is started and served: password, port and refused requests."""

import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import xtts_demo
from tests.ui.serving import serving
from utils.core.errors import ConfigError
from utils.core.paths import ROOT
from utils.server.page import Credentials, credentials, refusal

HERE, UPLOAD = "127.0.0.1:7860", "/gradio_api/upload"


def test_an_exposed_page_has_a_password_and_half_a_login_is_refused() -> None:
    assert credentials("", exposed=False) is None
    passwords = {account.password for _ in range(2) if (account := credentials("", exposed=True))}
    assert len(passwords) == 2
    assert all(len(password) >= 12 for password in passwords)
    assert credentials("abebe:a:b", exposed=True) == Credentials("abebe", "a:b")
    for auth in ("abebe", "abebe:", ":secret", ":"):
        with pytest.raises(ConfigError, match="user:password"):
            credentials(auth, exposed=True)


FOREIGN_HOSTS = ("evil.example:7860", "[::1", "x@localhost:7860", "localhost/x", "localhost:7860:1", "localhost:")


@pytest.mark.parametrize(
    ("headers", "path", "reason"),
    [
        *[({"host": host}, "/", "") for host in (HERE, "localhost:7860", "[::1]:7860", "127.0.0.2:7860")],
        *[({"host": host}, "/", "for localhost only") for host in FOREIGN_HOSTS],
        ({}, "/", "for localhost only"),
        ({"host": HERE, "origin": f"http://{HERE}"}, UPLOAD, ""),
        *[
            ({"host": HERE, "origin": origin}, UPLOAD, "not allowed to send")
            for origin in ("http://evil.example", "null", "http://127.0.0.1:9", "http://[::1")
        ],
        ({"host": HERE, "content-type": "multipart/form-data; boundary=" + "x" * 300}, UPLOAD, "too long"),
        ({"host": HERE}, "/gradio_api/file=https://example.org/x", "does not load files"),
        ({"host": HERE}, "/gradio_api/proxy=http://example.org/x", "does not load files"),
    ],
)
def test_foreign_requests_are_refused(headers: dict[str, str], path: str, reason: str) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"method": "POST" if headers.keys() & {"origin", "content-type"} else "GET", "path": path, "headers": raw}
    refused = refusal(scope, local=True)
    assert reason in refused
    assert bool(reason) is bool(refused)
    assert not refusal(scope | {"method": "GET", "path": "/"}, local=False)


REFUSED_TWICE = """import sys, xtts_demo
print(xtts_demo.main(["--auth", "nobody"]), "gradio" in sys.modules)
print(xtts_demo.main(["--output", xtts_demo.__file__]))  # not a folder
"""


@pytest.mark.slow
def test_a_wrong_password_is_refused_before_the_import_of_gradio() -> None:
    command = [sys.executable, "-c", REFUSED_TWICE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "user:password" in done.stderr
    assert done.stdout.split() == ["1", "False", "1"], done.stderr


def test_the_page_is_for_this_computer_by_default_and_needs_a_valid_port(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = xtts_demo.parser().parse_args([])
    assert (arguments.host, arguments.port, arguments.share) == ("127.0.0.1", 7860, False)
    for word in ("0", "65536", "many", "²"):
        with pytest.raises(SystemExit):
            xtts_demo.parser().parse_args([f"--port={word}"])
        assert "1-65535" in capsys.readouterr().err


@pytest.mark.slow
def test_an_exposed_page_on_a_taken_port_says_so_and_asks_for_its_new_password(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("0.0.0.0", 0))
        other.listen()
        taken = other.getsockname()[1]
        with serving(tmp_path / "output", "--host", "0.0.0.0", "--port", str(taken)) as page:
            assert page.lines[0] == f"Port {taken} is in use; the page is at {page.url}\n"
            password = page.wait_for(r"user amharic, password (\S+)")
            with pytest.raises(urllib.error.HTTPError, match="401"):
                urllib.request.urlopen(f"http://127.0.0.1:{urlsplit(page.url).port}/config", timeout=10)
            assert len(password) >= 12
