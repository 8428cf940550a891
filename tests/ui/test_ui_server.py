"""How the page is started and served: password, port, refused requests, and the cache of the page and its scripts."""

import asyncio
import http.client
import importlib.metadata
import inspect
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import gradio as gr
import pytest
from starlette.types import Message, Receive, Scope, Send

import xtts_demo
from tests.ui.serving import serving
from utils.core.addresses import is_loopback
from utils.core.errors import ConfigError
from utils.core.paths import ROOT
from utils.ui.gradio_server import PATCHES, FrontPage, credentials, free_port, refusal

HERE, UPLOAD = "127.0.0.1:7860", "/gradio_api/upload"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.4", "example.org"])
def test_other_addresses_than_loopback_are_exposed(host: str) -> None:
    assert not is_loopback(host)


def test_an_exposed_page_gets_a_new_password_each_time() -> None:
    assert credentials("", exposed=False) is None
    first, second = credentials("", exposed=True), credentials("", exposed=True)
    assert first
    assert second
    assert first.generated
    assert len(first.password) >= 12
    assert first.password != second.password


def test_a_given_password_may_contain_a_colon() -> None:
    who = credentials("abebe:a:b", exposed=True)
    assert who
    assert (who.user, who.password, who.generated) == ("abebe", "a:b", False)


@pytest.mark.parametrize("auth", ["abebe", "abebe:", ":secret", ":"])
def test_half_a_password_is_refused(auth: str) -> None:
    with pytest.raises(ConfigError, match="user:password"):
        credentials(auth, exposed=True)


def test_the_next_free_port_is_taken() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert taken < free_port("127.0.0.1", taken) < taken + 100


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
def test_requests_that_no_page_of_ours_makes_are_refused(headers: dict[str, str], path: str, reason: str) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"method": "POST" if "origin" in headers else "GET", "path": path, "headers": raw}
    refused = refusal(scope, local=True)
    assert reason in refused
    assert bool(reason) is bool(refused)
    assert not refusal(scope | {"method": "GET", "path": "/"}, local=False)


class CountingApp:
    """An application that counts its requests."""

    def __init__(self, status: int = 200, text: str = "answer {}") -> None:
        self.status = status
        self.text = text
        self.times = 0

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        self.times += 1
        body = self.text.format(self.times).encode()
        head = [(b"number", b"%d" % self.times), (b"etag", b"file"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": self.status, "headers": head})
        await send({"type": "http.response.body", "body": body})


async def never() -> Message:
    raise AssertionError


def ask(page: FrontPage, path: str = "/", method: str = "GET", query: str = "", **headers: str) -> list[Message]:
    named = {name.replace("_", "-"): value for name, value in ({"host": HERE} | headers).items()}
    scope: dict[str, Any] = {"type": "http", "scheme": "http", "method": method, "path": path}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in named.items()]
    scope["query_string"] = query.encode()
    received: list[Message] = []

    async def receive(message: Message) -> None:
        received.append(dict(message) | {"headers": [*message.get("headers", [])]})
        message["body"] = b"compressed"  # what lies before it may change what it is given
        message.get("headers", []).clear()

    asyncio.run(page(scope, never, receive))
    return received


@pytest.mark.parametrize("path", ["/", "/assets/index.js"])
def test_the_same_request_is_answered_from_the_cache(path: str) -> None:
    behind = CountingApp()
    page = FrontPage(behind, public=True)
    first = ask(page, path)
    assert ask(page, path) == first == ask(page, path)
    assert first[1]["body"] == b"answer 1"
    assert behind.times == 1


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("/", {"host": "localhost:7860"}),
        ("/", {"x_forwarded_host": "example.org"}),
        ("/", {"x_forwarded_proto": "https"}),
        ("/", {"query": "deep_link=x"}),
        ("/", {"method": "POST"}),
        ("/gradio_api/file=voice.wav", {}),
        ("/assets/index.js", {"range": "bytes=0-9"}),
        ("/assets/index.js", {"if_none_match": "tag"}),
    ],
)
def test_another_request_is_handed_on(path: str, other: dict[str, str]) -> None:
    behind = CountingApp()
    page = FrontPage(behind, public=True)
    ask(page, path)
    ask(page, path, **other)
    assert behind.times == 2


def test_the_cache_keeps_one_success_for_each_path() -> None:
    page = FrontPage(CountingApp(), public=True)
    for number in range(20):
        assert ask(page, host=f"name{number}")[1]["body"] == f"answer {number + 1}".encode()
    assert len(page.cache) == 1
    failing = FrontPage(CountingApp(status=500), public=True)
    ask(failing)
    assert not failing.cache


def test_a_page_with_a_password_is_made_for_each_visitor_and_its_scripts_are_not() -> None:
    behind = CountingApp()
    page = FrontPage(behind, public=False)
    for path in ("/", "/", "/assets/index.js", "/assets/index.js"):
        ask(page, path)
    assert behind.times == 3


def test_a_patched_script_has_its_own_length_and_no_etag() -> None:
    old, new = PATCHES[0]
    head, body = ask(FrontPage(CountingApp(text=f"before {old} after"), public=True), "/assets/index.js")
    assert body["body"] == f"before {new} after".encode()
    assert dict(head["headers"]) == {b"number": b"1", b"content-length": b"%d" % len(body["body"])}


def test_every_patch_matches_gradio_once() -> None:
    folder = Path(gr.__file__).parent
    scripts = [path.read_text(encoding="utf-8") for path in folder.glob("templates/frontend/assets/*.js")]
    assert [sum(script.count(old) for script in scripts) for old, _ in PATCHES] == [1] * len(PATCHES)


# the start from a terminal


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)


def test_help_and_a_wrong_password_need_no_gradio() -> None:
    done = run_python("import sys, xtts_demo; xtts_demo.main(['--auth', 'nobody']); sys.exit('gradio' in sys.modules)")
    assert done.returncode == 0
    assert "user:password" in done.stderr


def test_the_page_comes_without_renewing_the_stubs_of_gradio(tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    code = f"import xtts_demo; print(xtts_demo.main(['--output', {str(tmp_path / 'a file')!r}])); import gradio"
    done = run_python(f"{code}; print(gradio.component_meta.create_or_modify_pyi.__module__)")
    assert done.stdout.split() == ["1", "utils.ui.gradio_server"], done.stderr
    shipped = {Path(str(file.locate())) for file in importlib.metadata.files("gradio") or []}
    assert Path(inspect.getfile(gr.Audio)).with_suffix(".pyi") in shipped


def test_the_page_is_for_this_computer_by_default() -> None:
    arguments = xtts_demo.parser().parse_args([])
    assert (arguments.host, arguments.port, arguments.share) == ("127.0.0.1", 7860, False)


@pytest.mark.parametrize("word", ["-5", "0", "65536", "many", "²"])
def test_what_is_no_port_is_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
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
            connection = http.client.HTTPConnection("127.0.0.1", urlsplit(page.url).port or 0, timeout=10)
            connection.request("GET", "/config")
            assert connection.getresponse().status == 401
            connection.close()
            assert len(password) >= 12
