"""Where a request comes from: its client, the host that it names, and whether another web site has sent it.

Another web site, open in the same browser, can send requests to a server on this computer: by its address (then the
browser tells of the other site in Origin or Sec-Fetch-Site), or by a name that resolves to 127.0.0.1 (then the Host
header is not local). A page on another port of this computer is another site, to which cookies make no difference.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult

from starlette.datastructures import Headers
from starlette.types import Scope

from utils.core.addresses import NOWHERE, is_loopback, split_url
from utils.server.facts import ServerSettingError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[\w.-]+)(:\d{1,5})?", re.ASCII)  # a Host header, with its port
VISITOR = re.compile(rb"host|forwarded|x-forwarded\b.*|x-real-ip|x-gradio-server")  # headers that tell of the visitor
LOCAL_NAME = re.compile(r"^127\.0\.0\.1(?=:|$)")


def trusted_networks(names: Iterable[str]) -> tuple[Network, ...]:
    """Read the addresses and networks of trusted proxies."""
    try:
        return tuple(ipaddress.ip_network(name) for name in names)
    except ValueError as error:
        raise ServerSettingError("proxy", reason=str(error)) from error


def client_of(scope: Scope) -> str:
    """Return the address from which a request comes."""
    return str((scope.get("client") or ("", 0))[0])


@dataclass
class Site:
    """What a server knows of its own address."""

    local: bool  # it is for this computer only
    proxies: tuple[Network, ...] = ()  # whose forwarded headers count
    origins: frozenset[str] = frozenset()  # other web pages that may send requests
    tunnel: SplitResult = NOWHERE  # the public address that --share was given

    def resolve(self, scope: Scope) -> Scope:
        """Return the scope with the host, scheme and client of the visitor, and without forwarded headers.

        Anyone can send forwarded headers. They count from a trusted proxy, and for the host of the tunnel, whose
        program runs on this computer.
        """
        headers = Headers(scope=scope)
        client = client_of(scope)
        host = headers.get("host", "")
        scheme = scope["scheme"]
        named = (_forwarded(headers, "host") or [host])[-1]
        if self._is_proxy(client):
            sent = (_forwarded(headers, "proto") or [scheme])[-1]
            host = named
            if sent in {"http", "https"}:
                scheme = sent
            client = next((each for each in reversed(_forwarded(headers, "for")) if not self._is_proxy(each)), client)
        elif self.tunnel.netloc and self.tunnel.netloc in {host, named} and is_loopback(client):
            host = self.tunnel.netloc
            scheme = self.tunnel.scheme
        kept = [pair for pair in scope["headers"] if not VISITOR.fullmatch(pair[0])]
        if host:
            kept.insert(0, (b"host", host.encode("latin-1")))
        return {**scope, "scheme": scheme, "client": (client, 0), "headers": kept}

    def foreign(self, scope: Scope) -> Literal["", "host", "origin"]:
        """Return the header that shows that another web site sent a request; empty when none does."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        origin = headers.get("origin")
        named = HOST.fullmatch(host)
        is_tunnel = bool(host) and host == self.tunnel.netloc
        if self.local and not is_tunnel and not (named and is_loopback(named["name"].lower())):
            return "host"
        if origin is not None:
            is_own = origin in self.origins or _place(split_url(origin).netloc) == _place(host)
            return "" if is_own else "origin"
        is_own = headers.get("sec-fetch-site", "none") in {"same-origin", "none"}
        return "" if is_own or _follows_link(scope, headers) else "origin"

    def _is_proxy(self, address: str) -> bool:
        try:
            ip = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(ip in network for network in self.proxies)


def _forwarded(headers: Headers, name: str) -> list[str]:
    """Return the values of a forwarded header; each proxy adds one at the end."""
    return [each.strip() for line in headers.getlist(f"x-forwarded-{name}") for each in line.split(",")]


def _place(netloc: str) -> str:
    """Return a host and port in one way of writing: localhost and 127.0.0.1 are one."""
    return LOCAL_NAME.sub("localhost", netloc.lower())


def _follows_link(scope: Scope, headers: Headers) -> bool:
    """Tell whether a person follows a link from another site to the front page, whose content that site cannot read."""
    kind = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    return scope["method"] == "GET" and scope["path"] == "/" and kind == ("navigate", "document")
