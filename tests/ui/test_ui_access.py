"""Who may reach the page."""

import socket

import pytest

from utils.core.addresses import is_loopback
from utils.core.errors import ConfigError
from utils.ui.gradio_server import credentials, free_port, refusal


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("localhost", True),
        ("::1", True),
        ("0.0.0.0", False),
        ("192.168.1.4", False),
        ("example.org", False),
    ],
)
def test_only_loopback_addresses_are_private(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_a_private_page_needs_no_password() -> None:
    assert credentials("", exposed=False) is None


def test_an_exposed_page_gets_a_new_password_each_time() -> None:
    first, second = credentials("", exposed=True), credentials("", exposed=True)
    assert first is not None
    assert second is not None
    assert first.generated
    assert len(first.password) >= 12
    assert first.password != second.password


@pytest.mark.parametrize("exposed", [True, False])
def test_a_given_password_is_taken_and_may_hold_a_colon(exposed: bool) -> None:
    who = credentials("abebe:a:b", exposed=exposed)
    assert who is not None
    assert (who.user, who.password, who.generated) == ("abebe", "a:b", False)


@pytest.mark.parametrize("auth", ["abebe", "abebe:", ":secret", ":"])
def test_half_a_password_is_refused(auth: str) -> None:
    with pytest.raises(ConfigError, match="user:password"):
        credentials(auth, exposed=True)


def test_the_next_free_port_is_taken() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        assert taken < free_port("127.0.0.1", taken) < taken + 100


@pytest.mark.parametrize(
    ("headers", "method", "path", "local", "reason"),
    [
        ({"host": "127.0.0.1:7860"}, "GET", "/", True, ""),
        ({"host": "localhost:7860"}, "GET", "/", True, ""),
        ({"host": "[::1]:7860"}, "GET", "/", True, ""),
        ({"host": "127.0.0.2:7860"}, "GET", "/", True, ""),
        ({"host": "evil.example:7860"}, "GET", "/", True, "for localhost only"),
        ({"host": "[::1"}, "GET", "/", True, "for localhost only"),
        ({"host": "127.0.0.1:7860", "origin": "http://[::1"}, "POST", "/", True, "not allowed to send"),
        ({}, "GET", "/", True, "for localhost only"),
        ({"host": "evil.example"}, "GET", "/", False, ""),
        ({"host": "127.0.0.1:7860", "origin": "http://127.0.0.1:7860"}, "POST", "/gradio_api/upload", True, ""),
        (
            {"host": "127.0.0.1:7860", "origin": "http://evil.example"},
            "POST",
            "/gradio_api/upload",
            True,
            "not allowed to send",
        ),
        ({"host": "127.0.0.1:7860", "origin": "null"}, "POST", "/gradio_api/upload", True, "not allowed to send"),
        (
            {"host": "127.0.0.1:7860", "origin": "http://127.0.0.1:9"},
            "POST",
            "/gradio_api/upload",
            True,
            "not allowed to send",
        ),
        ({"host": "127.0.0.1:7860"}, "GET", "/gradio_api/file=https://example.org/x", True, "does not load files"),
        ({"host": "127.0.0.1:7860"}, "GET", "/gradio_api/proxy=http://example.org/x", True, "does not load files"),
    ],
)
def test_requests_that_no_page_of_ours_makes_are_refused(
    headers: dict[str, str], method: str, path: str, local: bool, reason: str
) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    said = refusal({"method": method, "path": path, "headers": raw}, local=local)
    assert reason in said
    assert bool(reason) is bool(said)
