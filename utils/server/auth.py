"""Who may enter: the key, the name the server was called by, and how much a request may bring along."""

import asyncio
import hashlib
import hmac
import os
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from utils.core.addresses import foreign_header, is_loopback
from utils.core.errors import ConfigError
from utils.server.errors import RefusedError, answer

VARIABLE = "AMHARIC_TTS_API_KEY"
SHORTEST_KEY = 16
OPEN = frozenset({"/health", "/docs", "/openapi.json"})  # they tell nothing about anybody
BODY_SECONDS = 30.0  # a request that takes longer to arrive is no honest one
DRAINED, DRAIN_SECONDS = 8 << 20, 2.0  # read of what is refused, so that the caller gets to read why
HOW = 'Make one: python -c "import secrets; print(secrets.token_urlsafe(32))"'


def api_key(file: str, host: str) -> str:
    """Return the key that callers have to send; empty when none is set and none is needed."""
    key = _read(Path(file)) if file else os.environ.get(VARIABLE, "").strip()
    if not key and not is_loopback(host):
        raise ConfigError(
            f"Other computers can reach {host}, and no API key is set.",
            hint=f"Set {VARIABLE}, or name a file with --api-key-file. {HOW}",
        )
    if key and (len(key) < SHORTEST_KEY or not key.isascii() or not key.isprintable() or " " in key):
        raise ConfigError(f"The API key needs {SHORTEST_KEY} letters and digits or more, without spaces.", hint=HOW)
    return key


def _read(path: Path) -> str:
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The API key cannot be read from {path}: {error}.", hint="See --api-key-file.") from error
    if not key:
        raise ConfigError(f"{path} is empty; it has to hold the API key.", hint=HOW)
    return key


class Door:
    """Refuses what may not enter before any other code sees it, and holds a request until all of it is there.

    Args:
        app: The application behind it.
        key: What callers have to send; empty: nothing.
        local: Whether only this computer is served.
        largest: Bytes that a request may have.
    """

    def __init__(self, app: ASGIApp, *, key: str, local: bool, largest: int) -> None:
        self.app = app
        self.key = _digest(key) if key else b""
        self.local = local
        self.largest = largest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refused request, hand on every other."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        try:
            self._judge(scope["path"], headers)
            body = await self._body(headers, receive)
        except RefusedError as error:
            await answer(error)(scope, receive, send)
            return
        if body is not None:
            await self.app(scope, _again(body, receive), send)

    def _judge(self, path: str, headers: Headers) -> None:
        """Refuse requests of other web sites, and those without the key."""
        foreign = foreign_header(headers, local=self.local)
        if foreign == "host":
            raise RefusedError(403, "wrong_host", "This server answers only as localhost.")
        if foreign == "origin":
            raise RefusedError(403, "wrong_origin", "Other web sites may not use this server.")
        if self.key and path not in OPEN:
            kind, _, sent = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(_digest(sent.strip()), self.key):
                message = "Send the API key of this server in the header 'Authorization: Bearer KEY'."
                raise RefusedError(401, "invalid_api_key", message)

    async def _body(self, headers: Headers, receive: Receive) -> bytes | None:
        """Wait for the whole request; None when its sender has gone."""
        announced = headers.get("content-length", "0")
        parts, size = [], 0
        try:
            async with asyncio.timeout(BODY_SECONDS):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    more = message.get("more_body", False)
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self.largest or (announced.isdecimal() and int(announced[:20]) > self.largest):
                        await _drain(receive, more=more)
                        raise RefusedError(413, "too_large", f"A request may have {self.largest:,} bytes at most.")
        except TimeoutError as error:
            raise RefusedError(408, "too_slow", f"The request took over {BODY_SECONDS:g} seconds to come.") from error
        return b"".join(parts)


async def _drain(receive: Receive, *, more: bool) -> None:
    """Read on for a while: a connection closed on a caller who is still sending takes the answer with it."""
    read = 0
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while more and read < DRAINED:
                message = await receive()
                read += len(message.get("body", b""))
                more = message.get("more_body", False)
    except TimeoutError:
        return  # the answer is due now, whether it is read or not


def _again(body: bytes, receive: Receive) -> Receive:
    """Give a request that was read already, and then what happens to its sender."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def give() -> Message:
        return waiting.pop() if waiting else await receive()

    return give


def _digest(key: str) -> bytes:
    """Give keys one length, so that comparing takes one time."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
