"""Addresses that lead inside in a roundabout way, those of the sixth version above all, and those with a password."""

import socket

import pytest

from utils.core.addresses import check_public, public_connections_only
from utils.core.errors import DownloadError

INSIDE = {
    "an old way of writing 127.0.0.1": "::127.0.0.1", "a translated one": "::ffff:0:7f00:1",
    "a network's own translation": "64:ff9b:1::7f00:1", "NAT64 of 127.0.0.1": "64:ff9b::7f00:1",
    "NAT64 of 169.254.169.254": "64:ff9b::a9fe:a9fe", "NAT64 of 10.0.0.5": "64:ff9b::a00:5",
    "6to4 of 127.0.0.1": "2002:7f00:1::1", "6to4 of 192.168.1.1": "2002:c0a8:101::1", "Teredo": "2001:0:7f00:1::",
    "this link": "fe80::1", "this site": "fec0::1", "a private network": "fc00::1", "many at once": "ff02::1",
    "nowhere": "::", "for examples": "2001:db8::1", "routers": "5f00::1", "this machine": "::ffff:127.0.0.1",
}  # fmt: skip
NUMBERS = ["0x7f000001", "0177.0.0.1", "127.1", "2130706433"]  # systems read them as this machine
NAMES = ["localhost", "user@127.0.0.1", "169.254.169.254", "100.64.0.1", "192.0.0.8", "192.0.0.170", "192.88.99.1"]
OUTSIDE = ["2606:4700:4700::1111", "2a00:1450::1", "64:ff9b::808:808", "::ffff:8.8.8.8"]


@pytest.mark.parametrize("host", [*(f"[{address}]" for address in INSIDE.values()), *NUMBERS, *NAMES])
def test_an_address_that_leads_inside_is_refused_however_it_is_written(host: str) -> None:
    with pytest.raises(DownloadError, match="private network"):
        check_public(f"http://{host}/a.mp3")


@pytest.mark.parametrize("address", OUTSIDE)
def test_an_address_of_the_internet_passes(address: str) -> None:
    check_public(f"http://[{address}]/a.mp3")


@pytest.mark.parametrize("kind", ["NAT64 of 10.0.0.5", "6to4 of 127.0.0.1", "an old way of writing 127.0.0.1"])
def test_a_connection_to_it_is_refused_too_as_after_a_redirect(kind: str) -> None:
    with public_connections_only(), pytest.raises(OSError, match="private network"):
        socket.create_connection((INSIDE[kind], 80), timeout=1)


def test_a_password_in_an_address_is_not_repeated() -> None:
    with pytest.raises(DownloadError, match="a password") as caught:
        check_public("https://abebe:s3cret@1.1.1.1/a.mp3")
    assert "s3cret" not in str(caught.value)
