"""The page itself and its scripts, which gradio makes anew for each visit although they are always the same."""

import copy

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from utils.ui.gradio_patches import mended

SCRIPTS = "/assets/"
NAMES = (b"host", b"x-forwarded-host", b"x-forwarded-proto", b"x-gradio-server")  # of them gradio makes addresses
PARTLY = {b"range", b"if-none-match", b"if-modified-since", b"if-range"}  # ask for something else than the whole


class FrontPage:
    """Answers from memory: 700 widgets and how they are tied take gradio 0.3 s each time.

    The page holds its own address; of each path only the last answer is kept, so memory has an end.

    Args:
        app: The application behind it.
        everybody: Whether the page is the same for everybody; one with a password is not, but its scripts are.
    """

    def __init__(self, app: ASGIApp, *, everybody: bool) -> None:
        self.app = app
        self.everybody = everybody
        self.known: dict[str, tuple[list[bytes], list[Message]]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is known, hand on every other request."""
        if not is_always_the_same(scope) or (scope["path"] == "/" and not self.everybody):
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        names = [scope["scheme"].encode(), *(headers.get(name, b"") for name in NAMES)]
        known, answer = self.known.get(scope["path"], ([], []))
        if known != names:
            answer = await self._made(scope, receive)
            if answer[0]["status"] == 200:
                self.known[scope["path"]] = names, answer
        for message in answer:
            await send(copy.deepcopy(message))  # whoever compresses it changes it

    async def _made(self, scope: Scope, receive: Receive) -> list[Message]:
        answer: list[Message] = []

        async def keep(message: Message) -> None:
            answer.append(message)

        await self.app(scope, receive, keep)
        return _mended(answer) if scope["path"].endswith(".js") else answer


def _mended(answer: list[Message]) -> list[Message]:
    head, *parts = answer
    script = b"".join(part["body"] for part in parts)
    better = mended(script)
    if better == script:
        return answer
    headers = MutableHeaders(raw=head["headers"])
    headers["content-length"] = str(len(better))
    for name in ("etag", "last-modified"):  # they speak of gradio's file
        del headers[name]
    return [head, {"type": "http.response.body", "body": better}]


def is_always_the_same(scope: Scope) -> bool:
    """Tell the page and its scripts from everything else."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["query_string"]:
        return False
    path: str = scope["path"]
    return path == "/" or (path.startswith(SCRIPTS) and not PARTLY & dict(scope["headers"]).keys())
