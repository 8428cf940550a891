"""Connections that send no request are closed, and make room for those that do."""

import contextlib
import http.client
import socket
import time
from collections.abc import Iterator

import pytest
from starlette.responses import PlainTextResponse

from utils.core.errors import ConfigError
from utils.server import connections
from utils.server.connections import BackgroundServer, bind, server_config


@pytest.fixture
def address(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, int]]:
    """A server that closes half-open connections after half a second, and keeps at most twenty."""
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.5)
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 20)
    server = BackgroundServer(server_config(PlainTextResponse("selam"), lifespan="off"))
    listener = bind("127.0.0.1", 0)
    server.start(listener)
    yield listener.getsockname()
    server.close()


def is_closed(line: socket.socket, within: float) -> bool:
    line.settimeout(within)
    try:
        return line.recv(1) == b""
    except ConnectionError:
        return True
    except TimeoutError:
        return False


def answer(address: tuple[str, int]) -> bytes:
    with contextlib.closing(http.client.HTTPConnection(*address, timeout=10)) as connection:
        connection.request("GET", "/")
        return connection.getresponse().read()


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: a\r\n", b"GET / HTTP/1.1\r\n\r\nGET / HT"])
def test_a_connection_without_a_request_is_closed(address: tuple[str, int], sent: bytes) -> None:
    with socket.create_connection(address) as line:
        line.sendall(sent)
        began = time.monotonic()
        while not is_closed(line, 5):
            assert time.monotonic() - began < 5
        assert time.monotonic() - began < 5


def test_headers_that_trickle_in_gain_no_time(address: tuple[str, int]) -> None:
    with socket.create_connection(address) as line:
        began = time.monotonic()
        line.sendall(b"GET / HTTP/1.1\r\n")
        with contextlib.suppress(ConnectionError):
            while time.monotonic() - began < 5:
                line.sendall(b"a: b\r\n")
                time.sleep(0.05)
        assert time.monotonic() - began < 3


def test_a_hundred_half_open_connections_keep_nobody_out(address: tuple[str, int]) -> None:
    with contextlib.ExitStack() as lines:
        opened = [lines.enter_context(socket.create_connection(address)) for _ in range(100)]
        assert answer(address) == b"selam"
        assert all(is_closed(line, 5) for line in opened)
    assert answer(address) == b"selam"


def test_the_next_free_port_is_taken() -> None:
    with bind("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match="--port"):
            bind("127.0.0.1", port)
        with bind("127.0.0.1", port, tries=50) as other:
            assert port < other.getsockname()[1] < port + 50
