"""The cache of the page and its scripts."""

import asyncio
from pathlib import Path
from typing import Any

import gradio
import pytest
from starlette.types import Message, Receive, Scope, Send

from utils.ui.gradio_server import PATCHES, FrontPage

LOCAL = {"host": "127.0.0.1:7860"}


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
    scope: dict[str, Any] = {"type": "http", "scheme": "http", "method": method, "path": path}
    named = {name.replace("_", "-"): value for name, value in (LOCAL | headers).items()}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in named.items()]
    scope["query_string"] = query.encode()
    heard: list[Message] = []

    async def hear(message: Message) -> None:
        heard.append(dict(message))
        message["body"] = b"compressed"  # what lies before it may change what it is given
        message.get("headers", []).clear()

    asyncio.run(page(scope, never, hear))
    return heard


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
        ("/config", {}),
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


def test_a_failure_is_not_cached() -> None:
    behind = CountingApp(status=500)
    page = FrontPage(behind, public=True)
    ask(page)
    ask(page)
    assert behind.times == 2


def test_the_cache_keeps_one_answer_for_each_path() -> None:
    behind = CountingApp()
    page = FrontPage(behind, public=True)
    for number in range(20):
        assert ask(page, host=f"name{number}")[1]["body"] == f"answer {number + 1}".encode()
    assert len(page.cache) == 1


def test_a_page_with_a_password_is_made_for_each_visitor_and_its_scripts_are_not() -> None:
    behind = CountingApp()
    page = FrontPage(behind, public=False)
    for path in ("/", "/", "/assets/index.js", "/assets/index.js"):
        ask(page, path)
    assert behind.times == 3


def test_a_patched_script_has_its_own_length_and_no_etag() -> None:
    old, new = PATCHES[0]
    seen: list[Message] = []

    async def hear(message: Message) -> None:
        seen.append(message)

    page = FrontPage(CountingApp(text=f"before {old} after"), public=True)
    scope = {"type": "http", "scheme": "http", "method": "GET", "path": "/assets/index.js", "headers": []}
    asyncio.run(page(scope | {"query_string": b""}, never, hear))
    assert seen[1]["body"] == f"before {new} after".encode()
    assert dict(seen[0]["headers"]) == {b"number": b"1", b"content-length": b"%d" % len(seen[1]["body"])}


def test_every_patch_matches_gradio_once() -> None:
    folder = Path(gradio.__file__).parent
    scripts = [path.read_text(encoding="utf-8") for path in folder.glob("templates/frontend/assets/*.js")]
    assert [sum(script.count(old) for script in scripts) for old, _ in PATCHES] == [1] * len(PATCHES)
