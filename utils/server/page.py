"""The web server of the page: a password, a free port, and refused requests. Does not import gradio."""

import copy
import re
import secrets
import socket
import sys
from dataclasses import dataclass, field
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from utils.core.addresses import foreign_header
from utils.core.errors import ConfigError
from utils.server.auth import LoginThrottle

PORTS_TRIED = 100

SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",  # no clickjacking
    "referrer-policy": "same-origin",
}
FILES, LOGIN = "/file=", "/login"
MAX_ANONYMOUS = 1 << 14  # bytes that a visitor may send before the login
MAX_CONTENT_TYPE = 256  # characters; the boundary of a form has at most 70
ASSET = re.compile(r"/assets/[\w.-]+")
PARTIAL = {b"range", b"if-none-match", b"if-modified-since", b"if-range"}  # ask for less than the whole
ELSEWHERE = re.compile(r"/(file|proxy)=\w+:/")  # gradio would fetch such an address for the visitor


@dataclass(frozen=True)
class Credentials:
    """User name and password of the page."""

    user: str
    password: str = field(repr=False)
    generated: bool = False


def credentials(auth: str, *, exposed: bool) -> Credentials | None:
    """Read ``user:password``; a page that others can reach gets a password of its own when none was given."""
    if not auth:
        return Credentials("amharic", secrets.token_urlsafe(12), generated=True) if exposed else None
    user, _, password = auth.partition(":")
    if not user or not password:
        raise ConfigError("--auth must have the form user:password.", hint="Separate user and password with a colon.")
    return Credentials(user, password)


def free_port(host: str, wanted: int) -> int:
    """Return the requested port or the next free one."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigError(
            f"{host} is not an address of this computer: {error.strerror}.", hint="See --host."
        ) from error
    for port in range(wanted, min(wanted + PORTS_TRIED, 65_536)):
        with socket.socket(family, kind) as probe:
            if sys.platform != "win32":  # there the option would let two programs share the port
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((address[0], port, *address[2:]))
            except OSError:
                continue
            return port
    raise ConfigError(f"There is no free port from {wanted} upwards on {host}.", hint="Choose another one with --port.")


class RequestGuard:
    """Refuses requests from other sites before any other code sees them, and adds security headers to responses."""

    def __init__(self, app: ASGIApp, *, local: bool) -> None:
        self.app = app
        self.local = local  # the page is for this computer only
        self.throttle = LoginThrottle(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=[*message["headers"]])
                headers.update(SECURITY_HEADERS)
                if FILES in scope["path"]:
                    headers.append("content-security-policy", "sandbox")  # an uploaded file runs no script
                message = {**message, "headers": headers.raw}
            await send(message)

        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] != "http":  # gradio uses no websockets
            await send({"type": "websocket.close", "code": 1008})
        elif reason := refusal(scope, local=self.local):
            await PlainTextResponse(reason, 403)(scope, receive, send)
        elif scope["path"].rstrip("/") == LOGIN and scope["method"] == "POST":
            await self.throttle(scope, receive, send_with_headers)
        else:
            await self.app(scope, receive, send_with_headers)


class AssetCache:
    """Keeps the scripts and styles of gradio in memory, and lets browsers keep them: a changed one has another name.

    Gradio reads each from disk, which takes milliseconds, and a page has a hundred.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.responses: dict[str, list[Message]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_asset = scope["type"] == "http" and scope["method"] == "GET" and ASSET.fullmatch(scope["path"])
        if not is_asset or PARTIAL & dict(scope["headers"]).keys():
            await self.app(scope, receive, send)
            return
        response = self.responses.get(scope["path"])
        if response is None:
            response = []

            async def collect(message: Message) -> None:
                response.append(message)

            await self.app(scope, receive, collect)
            if response[0]["status"] == 200:
                MutableHeaders(raw=response[0]["headers"])["cache-control"] = "public, max-age=31536000, immutable"
                self.responses[scope["path"]] = response
        for message in response:
            await send(copy.deepcopy(message))  # compression changes it in place


def refusal(scope: Scope, *, local: bool) -> str:
    """Return why a request is refused; empty when it is allowed."""
    headers = Headers(scope=scope)
    foreign = foreign_header(headers, local=local, check_origin=scope["method"] != "GET")
    if foreign == "host":
        return f"This page accepts requests for localhost only, not for {headers.get('host', '')}."
    if foreign == "origin":
        return f"{headers['origin']} is not allowed to send requests to this page."
    if scope["method"] == "POST" and len(headers.get("content-type", "")) > MAX_CONTENT_TYPE:
        return "The Content-Type header is too long."
    if ELSEWHERE.search(scope["path"]):
        return "This page does not load files from other servers."
    length = int(headers.get("content-length", "0"))
    if (length > MAX_ANONYMOUS or "transfer-encoding" in headers) and not has_login(scope["app"], headers):
        return "Log in first."
    return ""


def has_login(app: Any, headers: Headers) -> bool:  # noqa: ANN401  # that of gradio, which reads a body before it asks
    """Tell whether a request comes from a visitor who is logged in, or needs no login."""
    cookies = cookie_parser(headers.get("cookie", ""))
    tokens = (cookies.get(f"access-token-{kind}{app.cookie_id}") for kind in ("", "unsecure-"))
    return app.auth is None or any(token in app.tokens for token in tokens)
