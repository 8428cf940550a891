"""Start and stop the server: keys, addresses, a model that loads slowly or not at all, time limits and signals."""

import contextlib
import errno
import os
import signal
import time
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.server.fake_server import ENDLESS, SPEECH, Served, served
from utils.config import ServeConfig
from utils.core.errors import ConfigError, DiskFullError
from utils.server.app import create_app
from utils.server.auth import KEY_VARIABLE, api_key
from utils.server.schema import request_error
from utils.server.service import SpeechService, speech_defaults
from utils.speech.session import SpeechSession

KEY = "a-key-that-nobody-guesses-0123456789"


@pytest.fixture(autouse=True)
def no_key_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


@pytest.mark.parametrize("host", ["localhost", "[::1]", "127.9.9.9"])
def test_loopback_needs_no_key(host: str) -> None:
    assert api_key("", host) == ""


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "example", ""])
def test_other_addresses_need_a_key(host: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=KEY_VARIABLE):
        api_key("", host)
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    assert api_key("", host) == KEY
    (tmp_path / "key").write_text(f"{KEY}2\n")
    assert api_key(str(tmp_path / "key"), host) == f"{KEY}2"


def test_settings_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "speech.yaml").write_text("temperature: 0.6\n")
    defaults = speech_defaults(ServeConfig(speech=str(tmp_path / "speech.yaml"), model="mine"))
    assert (defaults.temperature, defaults.model) == (0.6, "mine")
    for setting in ("voices", "speech"):
        config = ServeConfig.parse({setting: str(tmp_path / "none")})
        with pytest.raises(ConfigError, match="none"):
            create_app(SpeechService(config, SpeechSession(lambda *_: pytest.fail("a model was loaded"))))


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), DiskFullError(Path("a"), "x")])
def test_a_full_disk_is_named(error: Exception) -> None:
    answer = request_error(error)
    assert (answer.status, answer.fault, "full" in str(answer)) == (507, "disk_full", True)


@pytest.mark.slow
def test_without_the_key_nothing_but_health() -> None:
    with served("--host", "0.0.0.0", environment={**os.environ, KEY_VARIABLE: KEY}) as server:
        for sent in ("", f"Bearer {KEY}x", KEY, "Bearer ሰ"):
            for path in ("/v1/voices", "/v1/models", "/docs", "/openapi.json", "/no-such-address"):
                answer = server.http.get(path, headers={b"Authorization": sent.encode()})
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
                assert KEY not in answer.text
        assert server.http.post(SPEECH, json={"input": "a"}).status_code == 401
        assert all(server.http.get(path).status_code == 200 for path in ("/health", "/ready"))
        server.http.headers["Authorization"] = f"Bearer {KEY}"
        assert server.speak().status_code == 200
        assert not [line for line in server.lines if KEY in line]


@pytest.mark.slow
def test_requests_while_the_model_is_loading() -> None:
    with contextlib.closing(Served("--model", "late")) as server:
        answer = server.speak()
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert answer.json()["error"]["code"] == "loading"
        assert server.http.get("/health").status_code == 503
        server.wait_until(status="ok")
        assert server.speak().status_code == 200


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_ends_the_server() -> None:
    with contextlib.closing(Served("--model", "missing")) as server:
        assert server.wait_for("(WordedTextError: There is no such model. Name another.)")
        assert server.process.wait(5) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("sign", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 0)])
def test_a_signal_ends_the_server_within_seconds(sign: signal.Signals, code: int) -> None:
    with served() as server, contextlib.ExitStack() as open_requests:
        for _ in range(3):
            open_requests.enter_context(server.open_request(ENDLESS))
        server.wait_until(open=3)
        server.http.close()
        server.process.send_signal(sign)
        began = time.monotonic()
        assert server.process.wait(15) == code
        assert time.monotonic() - began < 6
        assert "Traceback" not in "".join(server.lines)


@pytest.mark.slow
def test_time_limit_of_a_request() -> None:
    with served("--seconds", "0.5") as server:
        answer = server.speak(ENDLESS, stream=False)
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")
        server.wait_until(open=0, speaking=0)
        with pytest.raises(httpx.RemoteProtocolError):
            server.speak(ENDLESS)
        server.wait_until(open=0, speaking=0)
        assert server.speak().status_code == 200
        assert "Traceback" not in "".join(server.lines)
