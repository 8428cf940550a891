"""Starting and stopping: keys, addresses, a model that loads late or not at all, and signals."""

import contextlib
import os
import signal
import time
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.server.fake_server import ENDLESS, SPEECH, Served, served
from utils.config import ServeConfig, SpeechConfig
from utils.core.addresses import is_loopback
from utils.core.errors import ConfigError
from utils.server.auth import VARIABLE, api_key
from utils.server.run import address, listening, rules_of
from utils.server.schema import SETTINGS

KEY = "a-key-that-nobody-guesses-0123456789"


@pytest.mark.parametrize(
    ("host", "local"),
    [
        *((host, True) for host in ("127.0.0.1", "localhost", "::1", "[::1]", "127.9.9.9")),
        *((host, False) for host in ("0.0.0.0", "::", "192.168.1.5", "example", "")),
    ],
)
def test_a_key_is_needed_where_others_can_reach_the_address(
    host: str, local: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert is_loopback(host) is local
    if local:
        assert api_key("", host) == ""
    else:
        with pytest.raises(ConfigError, match=r"no API key is set.*AMHARIC_TTS_API_KEY"):
            api_key("", host)
    monkeypatch.setenv(VARIABLE, KEY)
    assert api_key("", host) == KEY


@pytest.mark.parametrize(
    ("content", "fault"),
    [("", "is empty"), ("short", "needs 16"), ("ሰላም" * 9, "needs 16"), ("two words in one key", "needs 16")],
)
def test_a_file_with_a_bad_key_is_refused(tmp_path: Path, content: str, fault: str) -> None:
    (tmp_path / "key").write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=fault):
        api_key(str(tmp_path / "key"), "localhost")
    with pytest.raises(ConfigError, match="cannot be read"):
        api_key(str(tmp_path / "none"), "localhost")


def test_a_file_goes_before_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "x" * 20)
    (tmp_path / "key").write_text(f"{KEY}\n")
    assert api_key(str(tmp_path / "key"), "0.0.0.0") == KEY


def test_an_address_that_is_taken_or_not_ours_is_refused() -> None:
    port = r"cannot be listened at: .*--port"
    with listening("127.0.0.1", 0) as taken, pytest.raises(ConfigError, match=port):
        listening("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(ConfigError, match="cannot be listened at"):
        listening("192.0.2.1", 0)


@pytest.mark.parametrize(
    ("host", "written"), [("127.0.0.1", "http://127.0.0.1:8"), ("::1", "http://[::1]:8"), ("[::1]", "http://[::1]:8")]
)
def test_addresses_are_written_as_browsers_take_them(host: str, written: str) -> None:
    assert address(host, 8) == written


@pytest.mark.parametrize(("setting", "fault"), [("voices", "There is no folder"), ("speech", "cannot be read")])
def test_what_the_settings_name_has_to_be_there(tmp_path: Path, setting: str, fault: str) -> None:
    with pytest.raises(ConfigError, match=fault):
        rules_of(ServeConfig.parse({setting: str(tmp_path / "none")}))


def test_requests_begin_with_the_speech_settings_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "speech.yaml").write_text("temperature: 0.6\n")
    assert rules_of(ServeConfig(speech=str(tmp_path / "speech.yaml"))).base.temperature == 0.6


def test_callers_choose_no_files_and_no_amount_of_work() -> None:
    closed = set(SpeechConfig.model_fields) - set(SETTINGS)
    assert closed == {
        "model", "reference", "beams", "length_penalty", "candidates", "batch_size", "device", "precision",
    }  # fmt: skip


@pytest.mark.slow
def test_with_a_key_nothing_is_told_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with served("--host", "0.0.0.0", environment={**os.environ, VARIABLE: KEY}) as server:
        for sent in (
            {},
            {"Authorization": f"Bearer {KEY}x"},
            {"Authorization": KEY},
            {"Authorization": "Bearer ሰ".encode()},
        ):
            for path in ("/v1/voices", "/v1/models", "/no-such-address"):
                answer = server.http.get(path, headers=sent)  # type: ignore[arg-type]
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
                assert KEY not in answer.text
        assert server.http.post(SPEECH, json={"input": "a"}).status_code == 401
        assert all(server.http.get(path).status_code == 200 for path in ("/health", "/docs", "/openapi.json"))
        server.http.headers["Authorization"] = f"Bearer {KEY}"
        assert server.speak().status_code == 200
        assert not [line for line in server.lines if KEY in line]


@pytest.mark.slow
def test_while_the_model_is_being_loaded_the_server_says_so() -> None:
    server = Served("--model", "late")
    try:
        answer = server.speak()
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "still being loaded" in answer.json()["error"]["message"]
        assert server.http.get("/health").status_code == 503
        server.wait_until(status="ok")
        assert server.speak().status_code == 200
    finally:
        server.end()


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_ends_the_server_with_a_sentence() -> None:
    server = Served("--model", "missing")
    try:
        assert server.wait_for("(TextError: There is no such model. Name another.)")
        assert server.process.wait(5) == 1
    finally:
        server.end()


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("busy", [False, True])
def test_a_signal_ends_the_server_within_seconds(sign: signal.Signals, busy: bool) -> None:
    with served() as server, contextlib.ExitStack() as asking:
        if busy:
            for _ in range(3):
                asking.enter_context(server.asking(ENDLESS))
            server.wait_until(open=3)
        server.http.close()
        server.process.send_signal(sign)
        began = time.monotonic()
        code = server.process.wait(15)
        assert time.monotonic() - began < 6
        assert code == (0 if sign == signal.SIGINT else -signal.SIGTERM)
        assert "Traceback" not in "".join(server.lines)


@pytest.mark.slow
def test_a_request_ends_when_its_time_is_over() -> None:
    with served("--seconds", "0.5") as server:
        answer = server.speak(ENDLESS, stream=False)
        assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")
        server.wait_until(open=0, speaking=0)
        with pytest.raises(httpx.RemoteProtocolError):
            server.speak(ENDLESS)
        server.wait_until(open=0, speaking=0)
        assert server.speak().status_code == 200
        assert "Traceback" not in "".join(server.lines)
