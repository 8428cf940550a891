"""Failed logins of one client are delayed, those of others are not."""

import asyncio
import time

import pytest
from httpx import ASGITransport, AsyncClient
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from utils.server import auth
from utils.server.auth import LoginThrottle

pytestmark = pytest.mark.slow


async def login(scope: Scope, receive: Receive, send: Send) -> None:
    body = await Request(scope, receive).body()
    await PlainTextResponse("", 200 if body == b"right" else 400)(scope, receive, send)


async def seconds(client: AsyncClient, *passwords: bytes) -> float:
    """Send logins at the same time and return how long they took."""
    started = time.monotonic()
    await asyncio.gather(*(client.post("/login", content=password) for password in passwords))
    return time.monotonic() - started


def test_failed_logins_are_delayed_for_that_client_until_one_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "FIRST_DELAY", 0.1)

    async def attack() -> None:
        throttle = LoginThrottle(login)
        attacker, other = (
            AsyncClient(transport=ASGITransport(throttle, client=(address, 1)), base_url="http://page")
            for address in ("10.0.0.1", "10.0.0.2")
        )
        assert await seconds(attacker, *[b"wrong"] * 4) >= 0.1 + 0.2 + 0.4
        assert await seconds(other, b"right") < 0.25
        assert await seconds(attacker, b"right") >= 0.8
        assert await seconds(attacker, b"right") < 0.25
        many = await asyncio.gather(*(attacker.post("/login", content=b"wrong") for _ in range(20)))
        assert sum(response.status_code == 429 for response in many) >= 15
        assert await seconds(other, b"right") < 0.25

    asyncio.run(attack())


def test_all_addresses_together_make_two_guesses_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auth, "MAX_WAITING_IN_ALL", 4)

    async def attack() -> None:
        throttle = LoginThrottle(login)
        clients = [
            AsyncClient(transport=ASGITransport(throttle, client=(f"10.0.1.{number}", 1)), base_url="http://page")
            for number in range(40)
        ]
        for client in clients[:10]:
            await seconds(client, b"wrong")
        began = time.monotonic()
        responses = await asyncio.gather(*(client.post("/login", content=b"wrong") for client in clients[10:]))
        guesses = sum(response.status_code == 400 for response in responses)
        assert guesses == 4
        assert time.monotonic() - began >= 4 * 0.5
        assert sum(response.status_code == 429 for response in responses) == 26

    asyncio.run(attack())
