"""Access to the server: the API key, the host and origin of a request, and its size."""

import asyncio
import hashlib
import hmac
import os
from dataclasses import dataclass, field
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from utils.core.addresses import foreign_header, is_loopback
from utils.core.errors import ConfigError
from utils.server.schema import RequestError

KEY_VARIABLE = "AMHARIC_TTS_API_KEY"
MIN_KEY_LENGTH = 16
PUBLIC_PATHS = frozenset({"/health", "/ready", "/docs", "/openapi.json"})
BODY_SECONDS = 30.0
DRAIN_BYTES, DRAIN_SECONDS = 8 << 20, 2.0  # read of a refused request, so that its client gets to read the response
FIRST_DELAY, MAX_DELAY = 0.25, 8.0  # seconds before a login that follows failed ones
MAX_CLIENTS = 1000  # whose failed logins are remembered
MAX_WAITING = 4  # logins of a client, which wait their turn even after it has disconnected
HINT = 'Create one: python -c "import secrets; print(secrets.token_urlsafe(32))"'


def api_key(file: str, host: str) -> str:
    """Return the API key; empty when none is set and none is needed."""
    key = _read(Path(file)) if file else os.environ.get(KEY_VARIABLE, "").strip()
    if not key and not is_loopback(host):
        raise ConfigError(
            f"Other computers can reach {host}, and no API key is set.",
            hint=f"Set {KEY_VARIABLE}, or give a file with --api-key-file. {HINT}",
        )
    if key and (len(key) < MIN_KEY_LENGTH or not key.isascii() or not key.isprintable() or " " in key):
        raise ConfigError(
            f"The API key must have at least {MIN_KEY_LENGTH} letters or digits, without spaces.", hint=HINT
        )
    return key


def _read(path: Path) -> str:
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read the API key from {path}: {error}.", hint="See --api-key-file.") from error
    if not key:
        raise ConfigError(f"The API key file {path} is empty.", hint=HINT)
    return key


class AuthMiddleware:
    """Checks each request before any other code sees it, and reads its whole body."""

    def __init__(
        self, app: ASGIApp, *, key: str, local: bool, max_bytes: int, origins: frozenset[str] = frozenset()
    ) -> None:
        self.app = app
        self.key = _digest(key) if key else b""  # what clients must send; empty: nothing
        self.local = local  # only this computer is served
        self.max_bytes = max_bytes
        self.origins = origins  # web pages that may call this server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        try:
            self._check(scope, headers)
            body = await self._body(headers, receive)
        except RequestError as error:
            await error.response()(scope, receive, send)
            return
        if body is not None:
            await self.app(scope, _replay(body, receive), send)

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Refuse requests of other web sites, and those without the key."""
        is_allowed = headers.get("origin") in self.origins
        foreign = foreign_header(headers, local=self.local, check_origin=not is_allowed)
        if foreign == "host":
            raise RequestError(403, "wrong_host", "This server accepts requests to localhost only.")
        if foreign == "origin":
            raise RequestError(403, "wrong_origin", "Requests from other websites are not allowed.")
        is_preflight = is_allowed and scope["method"] == "OPTIONS"
        if self.key and scope["path"] not in PUBLIC_PATHS and not is_preflight:
            kind, _, sent = headers.get("authorization", "").partition(" ")
            if kind.lower() != "bearer" or not hmac.compare_digest(_digest(sent.strip()), self.key):
                message = "Send the API key in the header 'Authorization: Bearer KEY'."
                raise RequestError(401, "invalid_api_key", message)

    async def _body(self, headers: Headers, receive: Receive) -> bytes | None:
        """Read the whole body; None when the client has disconnected."""
        announced = headers.get("content-length", "0")
        is_too_large = announced.isdecimal() and int(announced[:20]) > self.max_bytes
        body, more = bytearray(), True
        try:
            async with asyncio.timeout(BODY_SECONDS):
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    more = message.get("more_body", False)
                    body += message.get("body", b"")
                    if is_too_large or len(body) > self.max_bytes:
                        await _drain(receive, more=more)
                        raise RequestError(413, "too_large", f"The request is larger than {self.max_bytes:,} bytes.")
        except TimeoutError as error:
            reason = f"The request took more than {BODY_SECONDS:g} seconds to arrive."
            raise RequestError(408, "too_slow", reason) from error
        return bytes(body)


async def _drain(receive: Receive, *, more: bool) -> None:
    """Read on for a while: a client that is still sending when the connection closes never sees the response."""
    read = 0
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while more and read < DRAIN_BYTES:
                message = await receive()
                read += len(message.get("body", b""))
                more = message.get("more_body", False)
    except TimeoutError:
        return  # respond now, whether it is read or not


@dataclass
class _Attempts:
    """The logins of a client that failed one after the other."""

    failed: int = 0
    waiting: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)  # one at a time, so that many connections do not help


class LoginThrottle:
    """Delays a login of a client whose last ones failed, 0.25 s after the first, at most 8 s; refuses a long queue."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.clients: dict[str, _Attempts] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        attempts = self.clients.setdefault((scope.get("client") or ("", 0))[0], _Attempts())
        if len(self.clients) > MAX_CLIENTS:
            del self.clients[next(iter(self.clients))]

        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                attempts.failed = attempts.failed + 1 if message["status"] >= 400 else 0
            await send(message)

        if attempts.waiting == MAX_WAITING:
            await PlainTextResponse("Too many logins. Try again in a minute.", 429)(scope, receive, send)
            return
        attempts.waiting += 1
        try:
            async with attempts.turn:
                if attempts.failed:
                    await asyncio.sleep(min(MAX_DELAY, FIRST_DELAY * 2 ** (attempts.failed - 1)))
                await self.app(scope, receive, count)
        finally:
            attempts.waiting -= 1


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive function that gives the body that was read already."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def _digest(key: str) -> bytes:
    """Hash a key, so that comparing two takes the same time whatever their lengths."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
