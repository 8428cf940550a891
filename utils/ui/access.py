"""Access to the page: its port, its password, and the requests it refuses."""

import re
import secrets
import socket
import sys
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from utils.core.addresses import foreign_header
from utils.core.errors import ConfigError

PORTS_TRIED = 100
HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"SAMEORIGIN"),  # no clickjacking
    (b"referrer-policy", b"same-origin"),
)
SANDBOX = (b"content-security-policy", b"sandbox")  # an uploaded file runs no script
FILES = "/file="
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
    """Return the wanted port or the next one that is free."""
    for port in range(wanted, min(wanted + PORTS_TRIED, 65_536)):
        if _is_free(host, port):
            return port
    raise ConfigError(f"There is no free port from {wanted} upwards on {host}.", hint="Choose another one with --port.")


def _is_free(host: str, port: int) -> bool:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigError(
            f"{host} is not an address of this computer: {error.strerror}.", hint="See --host."
        ) from error
    with socket.socket(family, kind) as probe:
        if sys.platform != "win32":  # there the option would let two programs share the port
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError:
            return False
    return True


class RequestGuard:
    """Refuses requests from other sites before any other code sees them.

    Args:
        app: The application behind it.
        local: Whether the page is for this computer only.
    """

    def __init__(self, app: ASGIApp, *, local: bool) -> None:
        self.app = app
        self.local = local

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request or hand it on."""
        reason = refusal(scope, local=self.local) if scope["type"] == "http" else ""
        if not reason:
            await self.app(scope, receive, _with_headers(scope, send) if scope["type"] == "http" else send)
            return
        head = [(b"content-type", b"text/plain; charset=utf-8")]
        await send({"type": "http.response.start", "status": 403, "headers": head})
        await send({"type": "http.response.body", "body": reason.encode()})


def _with_headers(scope: Scope, send: Send) -> Send:
    """Add the security headers to every response."""
    more = [*HEADERS, *([SANDBOX] if FILES in scope["path"] else [])]

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], *more]}
        await send(message)

    return send_with_headers


def refusal(scope: Scope, *, local: bool) -> str:
    """Return why a request is refused; empty when it is allowed."""
    headers = Headers(scope=scope)
    foreign = foreign_header(headers, local=local, check_origin=scope["method"] != "GET")
    if foreign == "host":
        return f"This page accepts requests for localhost only, not for {headers.get('host', '')}."
    if foreign == "origin":
        return f"{headers['origin']} is not allowed to send requests to this page."
    if ELSEWHERE.search(scope["path"]):
        return "This page does not load files from other servers."
    return ""
