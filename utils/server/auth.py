"""Access to the server: the API key, the host and origin of a request, and its size."""

import asyncio
import hashlib
import hmac
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from utils.core.addresses import is_loopback
from utils.server.facts import RequestError, ServerSettingError
from utils.server.origins import Site, client_of
from utils.server.schema import error_response

KEY_VARIABLE = "AMHARIC_TTS_API_KEY"
MIN_KEY_LENGTH = 16
PUBLIC_PATHS = frozenset({"/health", "/ready"})
BODY_SECONDS = 30
DRAIN_BYTES, DRAIN_SECONDS = 8 << 20, 2.0  # read of a refused request, so that its client gets to read the response
FIRST_DELAY, MAX_DELAY = 0.25, 8.0  # seconds before a login that follows failed ones
MAX_CLIENTS = 1000  # whose failed logins are remembered
FREE_FAILURES, SECONDS_BETWEEN = 10, 0.5  # of all addresses together: after ten failed logins, two a second
MAX_WAITING = 4  # logins of a client, which wait their turn even after it has disconnected
MAX_WAITING_IN_ALL = 20


def api_key(file: str, host: str, *, proxies: bool = False) -> str:
    """Return the API key; empty when none is set and none is needed, as other computers cannot send requests."""
    key = _read(Path(file)) if file else os.environ.get(KEY_VARIABLE, "").strip()
    if not key and (proxies or not is_loopback(host)):
        raise ServerSettingError("no_key", host)
    if key and (len(key) < MIN_KEY_LENGTH or not key.isascii() or not key.isprintable() or " " in key):
        raise ServerSettingError("weak_key")
    return key


def _read(path: Path) -> str:
    try:
        key = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ServerSettingError("unreadable_key", str(path), str(error)) from error
    if not key:
        raise ServerSettingError("empty_key", str(path))
    return key


class AuthMiddleware:
    """Checks each request before any other code sees it, and reads its whole body."""

    def __init__(self, app: ASGIApp, site: Site, *, key: str, max_bytes: int) -> None:
        self.app = app
        self.site = site
        self.key = digest(key) if key else b""  # what clients must send; empty: nothing
        self.max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # the server starts without events of its lifespan
            await send({"type": "websocket.close", "code": 1008})
            return
        scope = self.site.resolve(scope)
        try:
            self._check(scope, Headers(scope=scope))
            received = await read_body(scope, receive, self.max_bytes)
        except RequestError as error:
            await error_response(error)(scope, receive, send)
            return
        if received is not None:
            await self.app(scope, received, send)

    def _check(self, scope: Scope, headers: Headers) -> None:
        """Refuse requests of other web sites, and those without the key."""
        foreign = self.site.foreign(scope)
        if foreign == "host":
            raise RequestError("wrong_host")
        if foreign == "origin":
            raise RequestError("wrong_origin")
        is_preflight = headers.get("origin") in self.site.origins and scope["method"] == "OPTIONS"
        is_public = not self.key or is_preflight or scope["path"] in PUBLIC_PATHS
        if not is_public and not hmac.compare_digest(digest(bearer(headers)), self.key):
            raise RequestError("invalid_api_key")


async def read_body(scope: Scope, receive: Receive, max_bytes: int) -> Receive | None:
    """Read the whole body of a request and return what gives it again; None when the client has disconnected."""
    announced = Headers(scope=scope).get("content-length", "0")
    is_too_large = announced.isdecimal() and int(announced[:20]) > max_bytes
    body = bytearray()
    more = True
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return None
                more = message.get("more_body", False)
                body += message.get("body", b"")
                if is_too_large or len(body) > max_bytes:
                    await _drain(receive, more=more)
                    raise RequestError("too_large", limit=max_bytes)
    except TimeoutError as error:
        raise RequestError("too_slow", limit=BODY_SECONDS) from error
    return _replay(bytes(body), receive)


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

    @contextmanager
    def in_queue(self) -> Iterator[None]:
        self.waiting += 1
        try:
            yield
        finally:
            self.waiting -= 1


class LoginThrottle:
    """Delays logins after failed ones, of the same address and of all together, and refuses a long queue."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.clients: dict[str, _Attempts] = {}
        self.everybody = _Attempts()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        attempts = self.clients.setdefault(client_of(scope), _Attempts())
        if len(self.clients) > MAX_CLIENTS:
            del self.clients[next(iter(self.clients))]

        async def count(message: Message) -> None:
            if message["type"] == "http.response.start":
                for counted in (attempts, self.everybody):
                    counted.failed = counted.failed + 1 if message["status"] >= 400 else 0
            await send(message)

        if attempts.waiting == MAX_WAITING or self.everybody.waiting == MAX_WAITING_IN_ALL:
            await PlainTextResponse("Too many logins. Try again in a minute.", 429)(scope, receive, send)
            return
        with attempts.in_queue(), self.everybody.in_queue():
            async with attempts.turn:
                if attempts.failed:
                    await asyncio.sleep(min(MAX_DELAY, FIRST_DELAY * 2 ** (attempts.failed - 1)))
                async with self.everybody.turn:
                    if self.everybody.failed >= FREE_FAILURES:
                        await asyncio.sleep(SECONDS_BETWEEN)
                    await self.app(scope, receive, count)


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive function that gives the body that was read already."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again


def bearer(headers: Headers) -> str:
    """Return the key that a program sends in the Authorization header."""
    kind, _, sent = headers.get("authorization", "").partition(" ")
    return sent.strip() if kind.lower() == "bearer" else ""


def digest(key: str) -> bytes:
    """Hash a key, so that comparing two takes the same time whatever their lengths."""
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
