"""The HTTP API: audio in each format, lists, errors, the queue."""

import base64
import contextlib
import io
import json
import time
from pathlib import Path
from typing import Any

import av
import httpx2 as httpx
import numpy as np
import pytest

from tests.server.fake_server import BROKEN, CHUNK, ENDLESS, SPEECH, UNREADABLE, Served
from utils.server.schema import SETTINGS, SpeechBody
from utils.server.stream import MEDIA_TYPES

WORDS = "one two three four five"
SECONDS = 5 * CHUNK.size / 24_000
JSON = {"Content-Type": "application/json"}


def error_of(response: httpx.Response) -> dict[str, str]:
    assert set(response.json()) == {"error"}
    error: dict[str, str] = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


def test_pcm_is_wav_without_its_header(server: Served) -> None:
    plain, file = (server.speak(WORDS, response_format=name).content for name in ("pcm", "wav"))
    assert file.endswith(plain)
    assert np.array_equal(np.frombuffer(plain, "<i2"), np.full(5 * CHUNK.size, 0.125 * 32_768))


@pytest.mark.parametrize("name", ["wav", "flac"])
def test_complete_files_tell_their_duration_and_their_doubtful_sentences(server: Served, name: str) -> None:
    response = server.speak("a doubtful text of words", response_format=name, stream=False)
    assert (response.headers["x-doubtful-sentences"], response.headers["content-type"]) == ("5", MEDIA_TYPES[name])
    assert int(response.headers["content-length"]) == len(response.content)
    with av.open(io.BytesIO(response.content), "r") as file:
        assert file.duration == pytest.approx((SECONDS + 5 * 0.5) * 1e6)


def test_server_sent_events(server: Served) -> None:
    response = server.speak(WORDS, response_format="pcm", stream_format="sse")
    assert response.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line.removeprefix("data: ")) for line in response.text.split("\n\n") if line]
    assert [event["type"] for event in events] == ["speech.audio.delta"] * 5 + ["speech.audio.done"]
    codes = round(SECONDS * 24_000 / 1024)
    usage = {"input_tokens": len(WORDS), "output_tokens": codes, "total_tokens": len(WORDS) + codes}
    assert events[-1]["usage"] == usage
    sound = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    assert sound == server.speak(WORDS, response_format="pcm").content


def test_speed_format_and_names_of_the_model(server: Served) -> None:
    assert server.speak().headers["content-type"] == MEDIA_TYPES["mp3"]
    quick, slow = (np.frombuffer(server.speak(response_format="pcm", speed=speed).content, "<i2") for speed in (2, 0.5))
    assert quick[0] / slow[0] == pytest.approx(4, rel=1e-3)  # the tones are as loud as they are quick
    assert {server.speak(model=name).status_code for name in ("", "tts-1", "amharic-xtts", "gpt-5")} == {200}


@pytest.mark.parametrize(("form", "rate"), [("pcm", 8000), ("wav", 44_100), ("mp3", 16_000), ("opus", 48_000)])
@pytest.mark.parametrize("stream", [True, False])
def test_the_audio_has_the_sample_rate_that_was_asked_for(server: Served, form: str, rate: int, stream: bool) -> None:
    content = server.speak(WORDS, response_format=form, sample_rate=rate, stream=stream).content
    pauses = 0 if stream else 5 * 0.5
    if form == "pcm":
        assert len(content) / 2 / rate == pytest.approx(SECONDS + pauses, abs=0.001)
        return
    with av.open(io.BytesIO(content), "r") as file:
        frames = list(file.decode(audio=0))
        assert frames[0].sample_rate == rate
        assert sum(frame.samples for frame in frames) / rate == pytest.approx(SECONDS + pauses, abs=0.12)


def test_fields_without_effect_are_named(server: Served) -> None:
    plain = server.speak(response_format="pcm")
    assert "x-ignored" not in plain.headers
    sent: dict[str, Any] = {
        "instructions": "whisper",
        "voise": "x",
        "reference": "/etc/passwd",
        "device": "cuda",
        "ድምፅ\r\nx: y": 1,
    }
    answer = server.speak(response_format="pcm", **sent)
    assert answer.content == plain.content
    assert answer.headers["x-ignored"] == "device, instructions, reference, voise, ?????x??y"
    body = {"input": "one", "voise": "x"}
    strict = server.http.post(SPEECH, json=body, headers={"X-Strict": "true"})
    assert (strict.status_code, "did you mean voice" in error_of(strict)["message"]) == (400, True)


INVALID: list[tuple[dict[str, object], str]] = [
    ({}, "The request: input is missing."),
    ({"input": " \n"}, "is empty"),
    ({"input": "x" * 501}, "501"),
    ({"input": f"a {UNREADABLE}"}, f"vocab.json has no symbol for {UNREADABLE}"),
    ({"input": "a", "voice": "Nobody"}, "default, Abebe, Almaz"),
    ({"input": "a", "voice": "../../etc/passwd"}, "voice"),
    ({"input": "a", "voice": "a|b"}, "voice"),
    ({"input": "a", "response_format": "midi"}, "'flac'"),
    ({"input": "a", "temperature": True}, "temperature"),
    ({"input": "a", "language": "klingon"}, "klingon"),
    ({"input": "a", "speed": 4.1}, "speed"),
    ({"input": "a", "speed": 0.2}, "speed"),
    ({"input": "a", "sample_rate": 7999}, "sample_rate"),
    ({"input": "a", "sample_rate": 44_100, "response_format": "opus"}, "48000"),
]


@pytest.mark.parametrize(("body", "fact"), INVALID, ids=lambda value: str(value)[:40])
def test_invalid_request(server: Served, body: dict[str, object], fact: str) -> None:
    response = server.http.post(SPEECH, json=body)
    error = error_of(response)
    assert (response.status_code, error["type"]) == (400, "invalid_request_error")
    assert fact in error["message"]
    assert "/secret/" not in error["message"]


@pytest.mark.parametrize(("name", "value"), [("speed", 9), ("input", ""), ("voice", "Nobody"), ("sample_rate", 1)])
def test_an_error_names_the_field_that_is_wrong(server: Served, name: str, value: object) -> None:
    assert error_of(server.http.post(SPEECH, json={"input": "a", name: value}))["param"] == name


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
MALFORMED: list[tuple[bytes | list[bytes], dict[str, str], int, str]] = [
    (b"", {}, 400, "invalid_json"),
    (b"\xff\xfe\x00", {}, 400, "invalid_json"),
    (b"[" * 5000, {}, 400, "invalid_json"),
    (b'["a"]', {}, 400, "invalid_json"),
    (b'{"input": "\\ud800"}', {}, 400, "invalid_value"),
    (b'{"input": "a", "temperature": NaN}', {}, 400, "invalid_value"),
    (b'{"input": "a", "seed": 1e400}', {}, 400, "invalid_value"),
    (b'{"input": "a", "seed": ' + b"9" * 9999 + b"}", {}, 400, "invalid_json"),
    (b'{"input": "a", "voice": "' + b"v" * 9999 + b'"}', {}, 400, "unknown_voice"),
    (b"input=a", FORM, 415, "not_json"),
    (b" " * 100_000, {}, 413, "too_large"),
    ([b" " * 10_000] * 50, {}, 413, "too_large"),  # in chunks, without a length
    (b'{"input": "a"}', {"Origin": "http://elsewhere.example"}, 403, "wrong_origin"),
    (b'{"input": "a"}', {"Origin": "null"}, 403, "wrong_origin"),
    (b'{"input": "a"}', {"Host": "elsewhere.example"}, 403, "wrong_host"),
    (b'{"input": "a"}', {"Host": "[::"}, 403, "wrong_host"),
]


@pytest.mark.parametrize(("content", "headers", "status", "code"), MALFORMED, ids=lambda value: str(value)[:40])
def test_malformed_request(server: Served, content: Any, headers: dict[str, str], status: int, code: str) -> None:
    response = server.http.post(SPEECH, content=content, headers=JSON | headers)
    assert (response.status_code, error_of(response)["code"]) == (status, code)
    assert len(response.content) < 1500


def test_lists_of_models_and_voices(server: Served, voices: Path) -> None:
    (model,) = server.http.get("/v1/models").json()["data"]
    assert (model["id"], model["object"]) == ("amharic-xtts", "model")
    assert server.http.get("/v1/audio/models").json()["models"] == [model]
    assert server.http.get("/v1/models/gpt-4o-mini-tts").json() == {**model, "id": "gpt-4o-mini-tts"}
    for path in ("/v1/voices", "/v1/audio/voices"):
        names = [voice["id"] for voice in server.http.get(path).json()["voices"]]
        assert names == ["default", "Abebe", "Almaz", "Kebede", "many"]
    assert all(server.speak(voice=name).status_code == 200 for name in names)
    (voices / "Later.wav").write_bytes((voices / "Kebede.wav").read_bytes())
    try:
        assert server.speak(voice="Later").status_code == 200
    finally:
        (voices / "Later.wav").unlink()
    assert server.speak(voice="Later").status_code == 400


def test_documentation(server: Served) -> None:
    assert "/openapi.json" in server.http.get("/docs").text
    call = server.http.get("/openapi.json").json()["paths"][SPEECH]["post"]
    fields = call["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert set(fields) == {*SpeechBody.model_fields, *SETTINGS}
    assert (fields["speed"]["minimum"], fields["speed"]["maximum"], fields["speed"]["default"]) == (0.25, 4.0, 1.0)
    assert {"200", "400", "401", "413", "429", "503"} <= set(call["responses"])


def test_a_client_that_disconnects_frees_its_place(server: Served) -> None:
    body = {"input": ENDLESS, "response_format": "pcm"}
    with server.http.stream("POST", SPEECH, json=body) as response:
        assert len(next(response.iter_bytes())) > 0
        assert server.counts()["speaking"] == 1
    left = time.monotonic()
    server.wait_until(speaking=0, open=0)
    assert time.monotonic() - left < 1
    assert server.speak().status_code == 200


def test_full_queue(server: Served) -> None:
    with contextlib.ExitStack() as speaking, contextlib.ExitStack() as waiting:
        speaking.enter_context(server.open_request(ENDLESS))
        server.wait_until(speaking=1, waiting=0)
        for _ in range(3):
            waiting.enter_context(server.open_request("a"))
        server.wait_until(waiting=3, open=4)
        response = server.speak()
        assert response.status_code == 429
        assert int(response.headers["retry-after"]) >= 1
        assert error_of(response)["code"] == "rate_limit_exceeded"
        waiting.close()
        server.wait_until(speaking=1, waiting=0, open=1)
    server.wait_until(speaking=0, open=0)


def test_a_client_that_does_not_read_blocks_nobody(server: Served) -> None:
    with server.open_request("word " * 90, response_format="wav"):  # 0.9 MB, which nobody fetches
        assert server.speak().status_code == 200
    server.wait_until(open=0)


def test_internal_errors_are_logged_not_sent(server: Served) -> None:
    response = server.speak(f"{BROKEN} at once")
    assert (response.status_code, error_of(response)["code"]) == (500, "server_error")
    assert "while" not in error_of(response)["message"]
    assert server.wait_for("ZeroDivisionError: (while speaking)")
    with pytest.raises(httpx.RemoteProtocolError):  # after the first sound
        server.speak(f"one two {BROKEN}")
    events = server.speak(f"one two {BROKEN}", stream_format="sse").text.strip().split("\n\n")
    last = json.loads(events[-1].removeprefix("data: "))
    assert (last["type"], last["error"]["code"]) == ("error", "server_error")
    assert server.speak().status_code == 200
