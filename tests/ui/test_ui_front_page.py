"""What is answered from memory, and what is asked anew."""

import asyncio
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from utils.ui.front_page import FrontPage

LOCAL = {"host": "127.0.0.1:7860"}


class Asked:
    """An application that counts how often it is asked."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.times = 0

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        self.times += 1
        head = [(b"number", str(self.times).encode())]
        await send({"type": "http.response.start", "status": self.status, "headers": head})
        await send({"type": "http.response.body", "body": f"answer {self.times}".encode()})


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

    async def never() -> Message:
        raise AssertionError

    asyncio.run(page(scope, never, hear))
    return heard


@pytest.mark.parametrize("path", ["/", "/assets/index.js"])
def test_the_same_question_is_asked_once(path: str) -> None:
    behind = Asked()
    page = FrontPage(behind)
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
    page = FrontPage(behind)
    ask(page, path)
    ask(page, path, **other)
    assert behind.times == 2


def test_a_failure_is_not_remembered() -> None:
    behind = Asked(status=500)
    page = FrontPage(behind)
    ask(page)
    ask(page)
    assert behind.times == 2


def test_memory_has_an_end() -> None:
    behind = Asked()
    page = FrontPage(behind)
    for number in range(20):
        assert ask(page, host=f"name{number}")[1]["body"] == f"answer {number + 1}".encode()
    assert len(page.known) == 1
