"""The page itself and its scripts, which gradio makes anew for each visit although they are always the same."""

import copy

from starlette.types import ASGIApp, Message, Receive, Scope, Send

SCRIPTS = "/assets/"
NAMES = (b"host", b"x-forwarded-host", b"x-forwarded-proto", b"x-gradio-server")  # of them gradio makes addresses
PARTLY = {b"range", b"if-none-match", b"if-modified-since", b"if-range"}  # ask for something else than the whole
MOST = 500  # answers; a page that is seen from elsewhere may be asked for under any name

Asked = tuple[bytes, ...]


class FrontPage:
    """Answers from memory: 700 widgets and how they are tied take gradio 0.3 s each time.

    It belongs to pages without a password, which are the same for everybody.

    Args:
        app: The application behind it.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.known: dict[Asked, list[Message]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what is known, hand on every other request."""
        asked = what_is_asked(scope)
        if asked is None:
            await self.app(scope, receive, send)
            return
        for message in self.known.get(asked) or await self._made(asked, scope, receive):
            await send(copy.deepcopy(message))  # whoever compresses it changes it

    async def _made(self, asked: Asked, scope: Scope, receive: Receive) -> list[Message]:
        answer: list[Message] = []

        async def keep(message: Message) -> None:
            answer.append(message)

        await self.app(scope, receive, keep)
        if answer[0].get("status") == 200 and len(self.known) < MOST:
            self.known[asked] = answer
        return answer


def what_is_asked(scope: Scope) -> Asked | None:
    """Return what the answer depends on, or None for what is not always the same."""
    if scope["type"] != "http" or scope["method"] != "GET" or scope["query_string"]:
        return None
    headers = dict(scope["headers"])
    path: str = scope["path"]
    if path == "/":
        return (scope["scheme"].encode(), *(headers.get(name, b"") for name in NAMES))
    if path.startswith(SCRIPTS) and not PARTLY & headers.keys():
        return (path.encode(),)
    return None
