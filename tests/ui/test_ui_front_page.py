"""What is answered from memory, and what is asked anew."""

import asyncio
from pathlib import Path
from typing import Any

import gradio
import pytest
from starlette.types import Message, Receive, Scope, Send

from utils.ui.front_page import FrontPage
from utils.ui.gradio_patches import MENDS

LOCAL = {"host": "127.0.0.1:7860"}


class Asked:
    """An application that counts how often it is asked."""

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
def test_the_same_question_is_asked_once(path: str) -> None:
    behind = Asked()
    page = FrontPage(behind, everybody=True)
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
def test_another_question_is_asked_anew(path: str, other: dict[str, str]) -> None:
    behind = Asked()
    page = FrontPage(behind, everybody=True)
    ask(page, path)
    ask(page, path, **other)
    assert behind.times == 2


def test_a_failure_is_not_remembered() -> None:
    behind = Asked(status=500)
    page = FrontPage(behind, everybody=True)
    ask(page)
    ask(page)
    assert behind.times == 2


def test_memory_has_an_end() -> None:
    behind = Asked()
    page = FrontPage(behind, everybody=True)
    for number in range(20):
        assert ask(page, host=f"name{number}")[1]["body"] == f"answer {number + 1}".encode()
    assert len(page.known) == 1


def test_a_page_with_a_password_is_made_for_each_visitor_and_its_scripts_are_not() -> None:
    behind = Asked()
    page = FrontPage(behind, everybody=False)
    for path in ("/", "/", "/assets/index.js", "/assets/index.js"):
        ask(page, path)
    assert behind.times == 3


def test_a_mended_script_is_told_with_its_own_length_and_without_the_tag_of_the_file() -> None:
    found, instead = MENDS[0]
    seen: list[Message] = []

    async def hear(message: Message) -> None:
        seen.append(message)

    page = FrontPage(Asked(text=f"before {found} after"), everybody=True)
    scope = {"type": "http", "scheme": "http", "method": "GET", "path": "/assets/index.js", "headers": []}
    asyncio.run(page(scope | {"query_string": b""}, never, hear))
    assert seen[1]["body"] == f"before {instead} after".encode()
    assert dict(seen[0]["headers"]) == {b"number": b"1", b"content-length": b"%d" % len(seen[1]["body"])}


@pytest.mark.parametrize("found", [mend.found for mend in MENDS])
def test_gradio_has_each_place_that_is_mended_once(found: str) -> None:
    scripts = Path(gradio.__file__).parent.glob("templates/frontend/assets/*.js")
    assert sum(script.read_text(encoding="utf-8").count(found) for script in scripts) == 1
