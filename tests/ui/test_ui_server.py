"""How the page is started and served: password, port, refused requests, and the cache of the page and its scripts."""

import importlib.metadata
import inspect
import itertools
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import gradio as gr
import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

import xtts_demo
from tests.ui.serving import serving
from utils.core.errors import ConfigError
from utils.core.paths import ROOT
from utils.ui.gradio_server import PATCHES, Credentials, FrontPage, credentials, refusal

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


@pytest.mark.parametrize(
    ("headers", "path", "reason"),
    [
        *[({"host": host}, "/", "") for host in (HERE, "localhost:7860", "[::1]:7860", "127.0.0.2:7860")],
        *[({"host": host}, "/", "for localhost only") for host in ("evil.example:7860", "[::1")],
        ({}, "/", "for localhost only"),
        ({"host": HERE, "origin": f"http://{HERE}"}, UPLOAD, ""),
        *[
            ({"host": HERE, "origin": origin}, UPLOAD, "not allowed to send")
            for origin in ("http://evil.example", "null", "http://127.0.0.1:9", "http://[::1")
        ],
        ({"host": HERE}, "/gradio_api/file=https://example.org/x", "does not load files"),
        ({"host": HERE}, "/gradio_api/proxy=http://example.org/x", "does not load files"),
    ],
)
def test_foreign_requests_are_refused(headers: dict[str, str], path: str, reason: str) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"method": "POST" if "origin" in headers else "GET", "path": path, "headers": raw}
    refused = refusal(scope, local=True)
    assert reason in refused
    assert bool(reason) is bool(refused)
    assert not refusal(scope | {"method": "GET", "path": "/"}, local=False)


def cached(*, status: int = 200, text: str = "response", public: bool = True) -> tuple[TestClient, FrontPage]:
    """A page that counts the requests that reach it; responses are compressed in place on their way out."""
    numbers = itertools.count(1)

    async def respond(_request: Request) -> Response:
        return Response(f"{text} {next(numbers)}".ljust(2000), status, {"etag": "file"})

    page = FrontPage(Starlette(routes=[Route("/{path:path}", respond, methods=["GET", "POST"])]), public=public)
    return TestClient(GZipMiddleware(page), base_url=f"http://{HERE}"), page


@pytest.mark.parametrize(
    ("public", "numbers"), [(True, [1, 1, 2, 2]), (False, [1, 2, 3, 3])], ids=["public", "with a password"]
)
def test_the_page_and_its_scripts_are_cached(public: bool, numbers: list[int]) -> None:
    client, _ = cached(public=public)
    texts = [client.get(path).text.strip() for path in ("/", "/", "/assets/index.js", "/assets/index.js")]
    assert texts == [f"response {number}" for number in numbers]


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/", {"host": "localhost:7860"}),
        ("GET", "/", {"x-forwarded-host": "example.org"}),
        ("GET", "/?deep_link=x", {}),
        ("POST", "/", {}),
        ("GET", "/gradio_api/file=voice.wav", {}),
        ("GET", "/assets/index.js", {"range": "bytes=0-9"}),
    ],
)
def test_another_request_is_not_answered_from_the_cache(method: str, path: str, headers: dict[str, str]) -> None:
    client, _ = cached()
    client.get(path if method == "GET" and headers else "/")
    assert client.request(method, path, headers=headers).text.strip() == "response 2"


def test_the_cache_holds_one_successful_response_per_path() -> None:
    client, page = cached()
    for number in range(3):
        client.get("/", headers={"host": f"name{number}"})
    assert len(page.cache) == 1
    client, page = cached(status=500)
    client.get("/")
    assert not page.cache


def test_a_patched_script_has_no_etag() -> None:
    old, new = PATCHES[0]
    client, page = cached(text=f"before {old} after")
    response = client.get("/assets/index.js")
    assert response.text.strip() == f"before {new} after 1"
    assert "etag" not in response.headers
    (_, (head, body)), *_ = page.cache.values()
    assert int(Headers(raw=head["headers"])["content-length"]) == len(body["body"])


def test_every_patch_matches_gradio_once() -> None:
    folder = Path(gr.__file__).parent
    scripts = [path.read_text(encoding="utf-8") for path in folder.glob("templates/frontend/assets/*.js")]
    assert [sum(script.count(old) for script in scripts) for old, _ in PATCHES] == [1] * len(PATCHES)


# the start from a terminal


REFUSED_TWICE = """import sys, xtts_demo
print(xtts_demo.main(["--auth", "nobody"]), "gradio" in sys.modules)
print(xtts_demo.main(["--output", xtts_demo.__file__]))  # not a folder
import gradio
print(gradio.component_meta.create_or_modify_pyi.__module__)
"""


def test_a_wrong_password_is_refused_before_the_import_of_gradio_which_writes_no_stub_files() -> None:
    command = [sys.executable, "-c", REFUSED_TWICE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "user:password" in done.stderr
    assert done.stdout.split() == ["1", "False", "1", "utils.ui.gradio_server"], done.stderr
    shipped = {Path(str(file.locate())) for file in importlib.metadata.files("gradio") or []}
    assert Path(inspect.getfile(gr.Audio)).with_suffix(".pyi") in shipped


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
