"""The web server of the page: its password or token, and refused requests. Does not import gradio."""

import contextlib
import hmac
import re
import secrets
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from utils.server.auth import LoginThrottle, bearer, digest, read_body
from utils.server.facts import RequestError, ServerSettingError
from utils.server.origins import Site
from utils.server.schema import error_response

SECURITY_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "SAMEORIGIN",  # no clickjacking
    "cross-origin-resource-policy": "same-origin",  # no other site shows what is here
    "referrer-policy": "same-origin",
}
FILES = "/file="
LOGIN = "/login"
UPLOAD = "/gradio_api/upload"
SPARE = 100 << 20  # bytes that an upload leaves free
MAX_LOGIN = 1 << 14  # bytes
MAX_CONTENT_TYPE = 256  # characters; the boundary of a form has at most 70
ASSET = re.compile(r"/assets/[\w.-]+")
ELSEWHERE = re.compile(r"/(file|proxy)=\w+:/")  # gradio would fetch such an address for the visitor
OFF = re.compile(r"/(gradio_api/)?(dev|vibe-\w+|undo-vibe-edit|runs|run-history|profiling|monitoring|deep_link)\b")
# What the form of the login consists of.
PUBLIC = re.compile(r"/|/assets/[\w.-]+|/static/[\w./-]+|(/gradio_api)?/theme\.css|/favicon\.ico")
EVENT = re.compile(r"/gradio_api/(run|api)/")
TOKEN = re.compile(r"[\w-]{40,}", re.ASCII)
COOKIE_SECONDS = 90 * 86_400
NEEDS_LINK = "Open the address that the program printed at its start: it contains a token, which this browser lacks.\n"


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
        raise ServerSettingError("login")
    return Credentials(user, password)


def page_token(output: Path) -> str:
    """Return the token that browsers need when there is no password.

    It outlives a restart, so that open tabs and bookmarks go on to work. Only this user can read the file; without a
    file, the token is for this start only.
    """
    path = output / ".settings" / "page-token"
    with contextlib.suppress(OSError):
        token = path.read_text(encoding="ascii")
        is_private = sys.platform == "win32" or not path.stat().st_mode & 0o077
        if is_private and TOKEN.fullmatch(token):
            return token
        path.unlink()
    token = secrets.token_urlsafe(32)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(0o600, exist_ok=False)
        path.write_text(token, encoding="ascii")
    return token


class PageGuard:
    """Refuses requests before any other code sees them, and adds security headers to every response.

    It is the outermost layer, around the finished application: gradio's own layers answer requests of other pages on
    this computer. A visitor needs the token, or a login with the password, which gradio checks.
    """

    def __init__(self, app: ASGIApp, site: Site, *, output: Path, token: str, gradio: Any) -> None:  # noqa: ANN401
        self.app = app
        self.output = output  # where uploads go
        self.site = site
        self.token = token  # empty when there is a password
        self.gradio = gradio  # its application, which knows who has logged in
        self.throttle = LoginThrottle(app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # gradio uses no websockets
            await send({"type": "websocket.close", "code": 1008})
            return
        scope = self.site.resolve(scope)
        is_login = scope["method"] == "POST" and scope["path"].rstrip("/") == LOGIN and not self.token

        async def send_with_headers(message: Message) -> None:
            await send(with_headers(message, scope["path"]) if message["type"] == "http.response.start" else message)

        handler: ASGIApp | None = self.refusal(scope)
        if is_login and handler is None:
            try:
                receive_again = await read_body(scope, receive, MAX_LOGIN)
            except RequestError as error:
                handler = error_response(error)
            else:
                handler = self.throttle
                receive = receive_again or receive
        reply = refusing_errors(send_with_headers) if EVENT.match(scope["path"]) else send_with_headers
        await (handler or self.app)(scope, receive, reply)

    def refusal(self, scope: Scope) -> Response | None:
        """Return the response to a request that the application must not see."""
        headers = Headers(scope=scope)
        foreign = self.site.foreign(scope)
        if foreign == "host":
            return PlainTextResponse("This page accepts requests for localhost only.", 403)
        if foreign == "origin":
            return PlainTextResponse("Requests from other websites are not allowed.", 403)
        if len(headers.get("content-type", "")) > MAX_CONTENT_TYPE:
            return PlainTextResponse("The Content-Type header is too long.", 403)
        return self._refused_page(scope, headers) if self.has_login(scope, headers) else self._refused_stranger(scope)

    def _refused_page(self, scope: Scope, headers: Headers) -> Response | None:
        path = scope["path"]
        if path.rstrip("/") == UPLOAD and not self._has_space(headers):
            return PlainTextResponse("The disk is full. Free some space, then upload again.", 507)
        return PlainTextResponse("Not found.", 404) if OFF.match(path) or ELSEWHERE.search(path) else None

    def _refused_stranger(self, scope: Scope) -> Response | None:
        if self.token:
            return self._enter(scope)
        path = scope["path"]
        is_public = PUBLIC.fullmatch(path) if scope["method"] in {"GET", "HEAD"} else path.rstrip("/") == LOGIN
        return None if is_public else PlainTextResponse("Log in first.", 401)

    def has_login(self, scope: Scope, headers: Headers) -> bool:
        """Tell whether a request comes from a visitor with the token, or from one who has logged in."""
        cookies = cookie_parser(headers.get("cookie", ""))
        if self.token:
            return self._is_token(cookies.get(cookie_name(scope)) or bearer(headers))
        sent = (cookies.get(f"access-token-{kind}{self.gradio.cookie_id}") for kind in ("", "unsecure-"))
        return any(token in self.gradio.tokens for token in sent)

    def _has_space(self, headers: Headers) -> bool:
        """Tell whether the disk has room for an upload, and a little more for the runs."""
        length = headers.get("content-length", "0")
        return not length.isdecimal() or int(length[:20]) + SPARE < shutil.disk_usage(self.output).free

    def _enter(self, scope: Scope) -> Response:
        """Store the token of the address in a cookie; the address that the browser then shows is without it."""
        if scope["path"] != "/" or not self._is_token(QueryParams(scope["query_string"]).get("token", "")):
            return PlainTextResponse(NEEDS_LINK, 401)
        response = RedirectResponse("/", 303)
        response.set_cookie(cookie_name(scope), self.token, COOKIE_SECONDS, httponly=True, samesite="lax")
        return response

    def _is_token(self, sent: str) -> bool:
        return hmac.compare_digest(digest(sent), digest(self.token))


def refusing_errors(send: Send) -> Send:
    """Answer 422 where gradio answers 500 with a sentence for the visitor: what was sent is wrong, not the server."""
    held = []

    async def reply(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == 500:
            held.append(message)
            return
        if held:
            is_for_visitor = b'"error":"' in message.get("body", b"") and b"Internal error" not in message["body"]
            await send({**held.pop(), "status": 422 if is_for_visitor else 500})
        await send(message)

    return reply


def cookie_name(scope: Scope) -> str:
    """Return a name for each port: a browser sends a cookie to all ports of a host."""
    return f"amharic-tts-{scope['server'][1]}"


def with_headers(message: Message, path: str) -> Message:
    """Add headers to the start of a response."""
    headers = MutableHeaders(raw=[*message["headers"]])
    headers.update(SECURITY_HEADERS)
    if FILES in path:
        headers.append("content-security-policy", "sandbox")  # an uploaded file runs no script
    if ASSET.fullmatch(path) and message["status"] in {200, 206, 304}:
        headers["cache-control"] = "public, max-age=31536000, immutable"  # a changed one has another name
    return {**message, "headers": headers.raw}
