"""Which addresses a download may reach: http and https on the public internet, and nothing behind the router."""

import ipaddress
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies

from utils.core.errors import AmharicTtsError

ONE_AT_A_TIME = threading.Lock()
UNICAST = ipaddress.ip_network("2000::/3")  # of the sixth version, all that is routed between networks
RELAYED = ipaddress.ip_network("2002::/16")  # packs an address of the fourth version, a private one too
TRANSLATED = ipaddress.ip_network("64:ff9b::/96")  # how networks without the fourth version reach one of its addresses


class DownloadError(AmharicTtsError):
    """Something could not be fetched from the internet."""


def is_address(text: str) -> bool:
    """Tell an address of any scheme from a path; C:/talks is a path."""
    scheme, separator, _ = text.partition("://")
    return bool(separator) and len(scheme) > 1 and scheme.replace("+", "").replace("-", "").isalnum()


def check_address(url: str, *, allow_private: bool = False) -> None:
    """Refuse an address that is not http(s), or that leads into this machine or its own network."""
    parts = _parts(url)
    if parts.password:
        raise DownloadError(
            f"An address of {parts.hostname} holds a password, which settings and logs would keep.",
            hint="Download the recording yourself and give the file.",
        )
    if allow_private:
        return
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        if parts.scheme in getproxies():  # then the proxy knows the name
            return
        hint = "Check the address and the connection."
        raise DownloadError(f"{parts.hostname} was not found ({error}).", hint=hint) from error
    if not all(_is_public(str(entry[4][0])) for entry in found):
        raise DownloadError(f"{url} leads into a private network.", hint="Give the file itself instead of an address.")


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise DownloadError(f"{url} is no address that can be fetched.", hint="It begins with http:// or https://.")
    return parts


def _is_public(address: str) -> bool:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        packed = ip.ipv4_mapped or (ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF) if ip in TRANSLATED else None)
        if packed is None and (ip not in UNICAST or ip in RELAYED):
            return False
        ip = packed or ip
    return ip.is_global and not ip.is_multicast


@contextmanager
def only_public() -> Iterator[None]:
    """Hold every connection of this thread to public addresses, wherever a page redirects to.

    Looking a name up is the one gate that all of Python's network code goes through, and what passes it is what is
    connected to, so a name that changes its address in between gains nothing. The user's own proxy may be private.
    """
    proxies = {urlsplit(address).hostname for address in getproxies().values()}
    caller = threading.get_ident()
    with ONE_AT_A_TIME:
        unguarded = socket.getaddrinfo

        def guarded(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - the shape of getaddrinfo
            found = unguarded(host, port, *args, **kwargs)
            if threading.get_ident() == caller and host not in proxies:
                for entry in found:
                    if not _is_public(str(entry[4][0])):
                        raise OSError(f"{host} leads into a private network")
            return found

        socket.getaddrinfo = guarded
        try:
            yield
        finally:
            socket.getaddrinfo = unguarded
