"""Which requests another web site has sent, and whose forwarded headers are believed."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.datastructures import Headers

from utils.core.errors import ConfigError
from utils.server.origins import Site, trusted_networks

HERE, TUNNEL, NAME = "127.0.0.1:7860", "https://abc.gradio.live", "voice.example"
PROXY = ("10.0.0.2", 4711)


def scope(peer: tuple[str, int] = ("127.0.0.1", 4711), method: str = "GET", path: str = "/x", **headers: Any) -> Any:
    raw = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "method": method, "path": path, "scheme": "http", "client": peer, "headers": raw}


def foreign(site: Site, request: Any) -> str:
    return site.foreign(site.resolve(request))


@pytest.mark.parametrize("host", [HERE, "localhost:7860", "[::1]:7860", "127.0.0.2:7860", "LOCALHOST"])
def test_names_of_this_computer_are_accepted(host: str) -> None:
    assert foreign(Site(local=True), scope(host=host)) == ""


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:7860",
        "[::1",
        "x@localhost:7860",
        "localhost/x",
        "localhost:7860:1",
        "localhost:",
        "",
        "127.0.0.1.a.io",
    ],
)
def test_a_local_page_refuses_other_names(host: str) -> None:
    assert foreign(Site(local=True), scope(host=host)) == "host"
    assert foreign(Site(local=False), scope(host=host)) == ""


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "PUT"])
@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "",
        "http://127.0.0.1:9",
        "http://localhost:9",
        "http://[::1",
        "http://127.0.0.1",
        "http://127.0.0.1:78601",
        "http://x:y@127.0.0.1:7860.evil.example",
        "http://127.0.0.2:7860",
        "127.0.0.1:7860",
    ],
)
def test_an_origin_elsewhere_is_foreign_for_every_method(origin: str, method: str) -> None:
    tricks: dict[str, Any] = {"x_forwarded_host": origin.removeprefix("http://") or "a", "forwarded": f"host={origin}"}
    each: dict[str, Any]
    for each in ({}, tricks, {"sec_fetch_site": "same-origin"}, {"x_gradio_server": origin}):
        request = scope(method=method, path="/", host=HERE, origin=origin, **each)
        assert foreign(Site(local=True), request) == "origin"


@pytest.mark.parametrize("host", [HERE, "localhost:7860"])
@pytest.mark.parametrize("origin", [f"http://{HERE}", "http://localhost:7860", "http://LOCALHOST:7860"])
def test_localhost_and_its_address_are_one_origin(host: str, origin: str) -> None:
    assert foreign(Site(local=True), scope(method="POST", host=host, origin=origin)) == ""


@pytest.mark.parametrize(
    ("path", "mode", "dest", "accepted"),
    [
        ("/", "navigate", "document", True),
        ("/", "navigate", "iframe", False),
        ("/", "no-cors", "image", False),
        ("/gradio_api/file=x", "navigate", "document", False),
    ],
)
@pytest.mark.parametrize("kind", ["cross-site", "same-site"])
def test_another_site_may_link_to_the_front_page_only(
    path: str, mode: str, dest: str, accepted: bool, kind: str
) -> None:
    headers: dict[str, Any] = {"sec_fetch_site": kind, "sec_fetch_mode": mode, "sec_fetch_dest": dest}
    assert foreign(Site(local=True), scope(host=HERE, path=path, **headers)) == ("" if accepted else "origin")


@pytest.mark.parametrize("peer", [("127.0.0.1", 1), ("10.0.0.3", 1)])
def test_forwarded_headers_of_a_stranger_are_dropped(peer: tuple[str, int]) -> None:
    site = Site(local=False, proxies=trusted_networks(["10.0.0.2", "fd00::/8"]))
    sent: dict[str, Any] = {
        "x_forwarded_host": NAME,
        "x_forwarded_proto": "https",
        "x_forwarded_for": "1.2.3.4",
        "x_real_ip": "1.2.3.4",
    }
    resolved = site.resolve(scope(peer, host=HERE, forwarded="for=1.2.3.4", x_gradio_server="http://evil", **sent))
    assert Headers(scope=resolved).items() == [("host", HERE)]
    assert (resolved["scheme"], resolved["client"][0]) == ("http", peer[0])


def test_a_trusted_proxy_names_host_scheme_and_client() -> None:
    site = Site(local=False, proxies=trusted_networks(["10.0.0.0/24"]))
    sent: dict[str, Any] = {"x_forwarded_host": f"evil.example, {NAME}", "x_forwarded_proto": "https"}
    resolved = site.resolve(scope(PROXY, host=HERE, x_forwarded_for="6.6.6.6, 1.2.3.4, 10.0.0.9", **sent))
    assert Headers(scope=resolved).items() == [("host", NAME)]
    assert (resolved["scheme"], resolved["client"][0]) == ("https", "1.2.3.4")
    assert foreign(site, scope(PROXY, host=HERE, origin=f"https://{NAME}", **sent)) == ""
    assert foreign(site, scope(PROXY, host=HERE, origin="https://evil.example", **sent)) == "origin"


def test_a_proxy_is_named_by_an_address() -> None:
    with pytest.raises(ConfigError, match="network such as"):
        trusted_networks(["proxy.example"])


@pytest.mark.parametrize(
    "headers", [{"host": "abc.gradio.live"}, {"host": HERE, "x_forwarded_host": "abc.gradio.live"}]
)
def test_visitors_of_the_tunnel_are_at_its_public_address(headers: dict[str, Any]) -> None:
    site = Site(local=True)
    assert foreign(site, scope(host="abc.gradio.live")) == "host"
    site.tunnel = urlsplit(TUNNEL)
    resolved = site.resolve(scope(x_forwarded_proto="http", x_forwarded_for="1.2.3.4", **headers))
    assert Headers(scope=resolved).items() == [("host", "abc.gradio.live")]
    assert (resolved["scheme"], resolved["client"][0]) == ("https", "127.0.0.1")
    assert foreign(site, scope(origin=TUNNEL, method="POST", **headers)) == ""
    assert foreign(site, scope(origin="http://localhost:9", method="POST", **headers)) == "origin"


@pytest.mark.parametrize(
    "headers", [{"host": "other.gradio.live"}, {"host": HERE, "x_forwarded_host": "a.gradio.live"}]
)
def test_the_tunnel_has_one_host(headers: dict[str, Any]) -> None:
    site = Site(local=True, tunnel=urlsplit(TUNNEL))
    assert foreign(site, scope(origin=f"https://{[*headers.values()][-1]}", **headers)) in {"host", "origin"}
