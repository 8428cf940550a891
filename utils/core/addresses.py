"""Network addresses: what is local, and what is public."""

import ipaddress
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies

from utils.core.errors import HostNotFoundError, PrivateAddressError, UrlNotUsableError, UrlWithPasswordError

NOWHERE = SplitResult("", "", "", "", "")
GETADDRINFO_LOCK = threading.Lock()
UNICAST_V6 = ipaddress.ip_network("2000::/3")  # all of IPv6 that is routed between networks
RELAYED_V6 = ipaddress.ip_network("2002::/16")  # 6to4 embeds an IPv4 address, which may be private
NOT_PUBLIC_V4 = (
    ipaddress.ip_network("192.0.0.0/24"),  # of the network itself; before Python 3.12.4 partly "global"
    ipaddress.ip_network("192.88.99.0/24"),  # was the relay of 6to4; nobody owns what answers there
)
NAT64 = ipaddress.ip_network("64:ff9b::/96")  # how IPv6-only networks reach an IPv4 address


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def split_url(url: str) -> SplitResult:
    """Split a URL into its parts; all are empty when it is malformed."""
    try:
        return urlsplit(url)
    except ValueError:
        return NOWHERE


def is_url(text: str) -> bool:
    """Tell a URL of any scheme from a path; C:/talks is a path."""
    scheme, separator, _ = text.partition("://")
    return bool(separator) and len(scheme) > 1 and scheme.replace("+", "").replace("-", "").isalnum()


def check_public(url: str, proxy: str = "") -> None:
    """Refuse a URL that is not http(s), or that leads to this machine or its own network."""
    parts = split_url(url)
    try:
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is not a number
        usable = False
    if not usable:
        raise UrlNotUsableError(url)
    if parts.password:
        raise UrlWithPasswordError(str(parts.hostname))
    try:
        resolved = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        if proxy or parts.scheme in getproxies():  # then the proxy resolves the name
            return
        raise HostNotFoundError(str(parts.hostname), str(error)) from error
    if not all(_is_public(str(entry[4][0])) for entry in resolved):
        raise PrivateAddressError(url)


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        embedded = ip.ipv4_mapped or (ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in NAT64 else None)
        if embedded is None and (ip not in UNICAST_V6 or ip in RELAYED_V6):
            return False
        ip = embedded or ip
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in NOT_PUBLIC_V4)


@contextmanager
def public_connections_only(proxy: str = "") -> Iterator[None]:
    """Limit every connection of this thread to public addresses, wherever a server redirects to.

    All of Python's network code resolves names with ``getaddrinfo`` and connects to what it returned, so a name that
    changes its address in between gains nothing. The user's own proxy may be private.
    """
    proxies = {urlsplit(address).hostname for address in (proxy, *getproxies().values())}
    caller = threading.get_ident()
    with GETADDRINFO_LOCK:
        original = socket.getaddrinfo

        def guarded(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the shape of getaddrinfo
            resolved = original(host, port, *args, **kwargs)
            if threading.get_ident() == caller and host not in proxies:
                for entry in resolved:
                    if not _is_public(str(entry[4][0])):
                        raise OSError(f"{host} is on a private network")
            return resolved

        socket.getaddrinfo = guarded
        try:
            yield
        finally:
            socket.getaddrinfo = original
