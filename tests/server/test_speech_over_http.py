"""What callers get: sound in each format, lists, and one sentence for each thing that goes wrong."""

import base64
import contextlib
import io
import json
import time
import wave
from pathlib import Path

import av
import httpx2 as httpx
import numpy as np
import pytest

from tests.server.fake_server import BROKEN, CHUNK, ENDLESS, SPEECH, UNREADABLE, Served
from utils.server.formats import MEDIA_TYPES
from utils.server.schema import SETTINGS, Asked

WORDS = "one two three four five"
SECONDS = 5 * CHUNK.size / 24_000

JSON = {"Content-Type": "application/json"}


def seconds(content: bytes) -> float:
    with av.open(io.BytesIO(content), "r") as file:
        return sum((frame.samples / frame.sample_rate for frame in file.decode(audio=0)), 0.0)


def error_of(answer: httpx.Response) -> dict[str, str]:
    assert set(answer.json()) == {"error"}
    error: dict[str, str] = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    return error


@pytest.mark.parametrize("name", [name for name in MEDIA_TYPES if name != "pcm"])
def test_each_format_is_sent_while_it_is_made_and_can_be_decoded(server: Served, name: str) -> None:
    answer = server.speak(WORDS, response_format=name)
    assert (answer.status_code, answer.headers["content-type"]) == (200, MEDIA_TYPES[name])
    assert answer.headers["transfer-encoding"] == "chunked"
    assert seconds(answer.content) == pytest.approx(SECONDS, abs=0.08)  # what mp3 and aac add at both ends


def test_pcm_is_the_sound_of_the_wav_file_without_its_head(server: Served) -> None:
    plain, file = (server.speak(WORDS, response_format=name).content for name in ("pcm", "wav"))
    assert file.endswith(plain)
    assert np.array_equal(np.frombuffer(plain, "<i2"), np.full(5 * CHUNK.size, 0.125 * 32_768))


def test_mp3_is_what_comes_without_asking(server: Served) -> None:
    assert server.speak().headers["content-type"] == "audio/mpeg"


@pytest.mark.parametrize("name", MEDIA_TYPES)
def test_a_whole_file_says_how_long_it_is(server: Served, name: str) -> None:
    answer = server.speak(WORDS, response_format=name, stream=False)
    assert int(answer.headers["content-length"]) == len(answer.content)
    if name == "wav":
        with wave.open(io.BytesIO(answer.content)) as sound:
            assert sound.getnframes() / 24_000 == pytest.approx(SECONDS + 5 * 0.5)
    if name == "flac":
        with av.open(io.BytesIO(answer.content), "r") as file:
            assert file.duration == pytest.approx((SECONDS + 5 * 0.5) * 1e6)


@pytest.mark.parametrize(("text", "count"), [("all is well", "0"), ("a doubtful text", "3")])
def test_a_whole_file_comes_with_the_number_of_doubtful_sentences(server: Served, text: str, count: str) -> None:
    assert server.speak(text, stream=False).headers["x-doubtful-sentences"] == count


def test_events_carry_the_same_sound(server: Served) -> None:
    answer = server.speak(WORDS, response_format="pcm", stream_format="sse")
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(line.removeprefix("data: ")) for line in answer.text.split("\n\n") if line]
    assert [event["type"] for event in events] == ["speech.audio.delta"] * 5 + ["speech.audio.done"]
    sound = b"".join(base64.b64decode(event["audio"]) for event in events[:-1])
    assert sound == server.speak(WORDS, response_format="pcm").content


def test_the_settings_of_speech_arrive(server: Served) -> None:
    quick, slow = (np.frombuffer(server.speak(response_format="pcm", speed=speed).content, "<i2") for speed in (2, 0.5))
    assert quick[0] / slow[0] == pytest.approx(4, rel=1e-3)  # the tones are as loud as they are quick


@pytest.mark.parametrize("model", ["", "tts-1", "amharic-xtts"])
def test_the_model_goes_by_its_name_and_by_those_that_programs_send(server: Served, model: str) -> None:
    assert server.speak(model=model).status_code == 200


BAD: list[tuple[dict[str, object], int, str]] = [
    ({}, 400, "input: {} Field required"),
    ({"input": ""}, 400, "at least 1 character"),
    ({"input": " \n"}, 400, "is empty"),
    ({"input": 5}, 400, "input: 5 should be a valid string"),
    ({"input": None}, 400, "input: None should be a valid string"),
    ({"input": ["a"]}, 400, "should be a valid string"),
    ({"input": "x" * 501}, 400, "The text has 501 characters; 500 are the most."),
    ({"input": f"a {UNREADABLE}"}, 400, f"vocab.json has no symbol for {UNREADABLE}. Write it in words."),
    ({"input": "a", "voice": "Nobody"}, 400, "There is no voice 'Nobody'; there are default, Abebe, Almaz"),
    ({"input": "a", "voice": {"id": "x"}}, 400, "voice: {'id': 'x'} should be a valid string"),
    ({"input": "a", "voice": "../../etc/passwd"}, 400, "There is no voice"),
    ({"input": "a", "voice": "Kebede.wav"}, 400, "There is no voice"),
    ({"input": "a", "voice": "a|b"}, 400, "There is no voice"),
    ({"input": "a", "response_format": "midi"}, 400, "should be 'mp3', 'opus', 'aac', 'flac', 'wav' or 'pcm'"),
    ({"input": "a", "stream_format": "x"}, 400, "should be 'audio' or 'sse'"),
    ({"input": "a", "speed": 9}, 400, "speed: 9 should be less than or equal to 2"),
    ({"input": "a", "speed": "fast"}, 400, "speed: 'fast' should be a valid number"),
    ({"input": "a", "temperature": True}, 400, "temperature: True should be a number"),
    ({"input": "a", "seed": -1}, 400, "seed: -1 should be greater than or equal to 0"),
    ({"input": "a", "language": "klingon"}, 400, "No language is called 'klingon'"),
    ({"input": "a", "voise": "x"}, 400, "voise: no such setting (did you mean voice?)"),
    ({"input": "a", "reference": "/etc/passwd"}, 400, "reference: no such setting"),
    ({"input": "a", "device": "cuda"}, 400, "device: no such setting"),
    ({"input": "a", "instructions": "Whisper."}, 400, "this model takes none"),
    ({"input": "a", "model": "gpt-5"}, 404, "There is no model 'gpt-5'; this one is called amharic-xtts."),
]


@pytest.mark.parametrize(("request_", "status", "sentence"), BAD, ids=lambda value: str(value)[:40])
def test_a_wrong_request_is_refused_with_a_sentence(
    server: Served, request_: dict[str, object], status: int, sentence: str
) -> None:
    answer = server.http.post(SPEECH, json=request_)
    error = error_of(answer)
    assert answer.status_code == status
    assert sentence in error["message"]
    assert error["type"] == "invalid_request_error"
    assert "/secret/" not in error["message"]


RAW: list[tuple[bytes, dict[str, str], int, str]] = [
    (b"", JSON, 400, "no valid JSON"),
    (b"{'input': 'a'}", JSON, 400, "no valid JSON"),
    (b'{"input": "a', JSON, 400, "no valid JSON"),
    (b"\xff\xfe\x00", JSON, 400, "no valid JSON"),
    (b"[" * 5000, JSON, 400, "no valid JSON"),
    (b'["a"]', JSON, 400, "has to be a JSON object"),
    (b'{"input": "\\ud800"}', JSON, 400, "should be a valid string"),
    (b'{"input": "a", "temperature": NaN}', JSON, 400, "should be a finite number"),
    (b'{"input": "a", "seed": 1e400}', JSON, 400, "should be a finite number"),
    (b'{"input": "a", "seed": ' + b"9" * 9999 + b"}", JSON, 400, ""),
    (b'{"input": "a", "voice": "' + b"v" * 9999 + b'"}', JSON, 400, "There is no voice"),
    (b'{"input": "a"}', {"Content-Type": "text/plain"}, 415, "Send JSON"),
    (b"input=a", {"Content-Type": "application/x-www-form-urlencoded"}, 415, "Send JSON"),
    (b" " * 100_000, JSON, 413, "A request may have 22,384 bytes at most."),
    (b'{"input": "a"}', {**JSON, "Origin": "http://elsewhere.example"}, 403, "Other web sites"),
    (b'{"input": "a"}', {**JSON, "Origin": "null"}, 403, "Other web sites"),
    (b'{"input": "a"}', {**JSON, "Host": "elsewhere.example"}, 403, "answers only as localhost"),
    (b'{"input": "a"}', {**JSON, "Host": "[::"}, 403, "answers only as localhost"),
]


@pytest.mark.parametrize(("content", "headers", "status", "sentence"), RAW, ids=lambda value: str(value)[:40])
def test_what_is_no_request_at_all_is_refused_with_a_sentence(
    server: Served, content: bytes, headers: dict[str, str], status: int, sentence: str
) -> None:
    answer = server.http.post(SPEECH, content=content, headers=headers)
    assert answer.status_code == status
    assert sentence in error_of(answer)["message"]
    assert len(answer.content) < 1500


def test_a_request_of_unknown_length_is_measured_on_the_way(server: Served) -> None:
    answer = server.http.post(SPEECH, content=iter([b" " * 10_000] * 50), headers=JSON)
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", SPEECH, 405), ("OPTIONS", SPEECH, 405), ("GET", "/a", 404)],
)
def test_other_addresses_say_that_they_are_none(server: Served, method: str, path: str, status: int) -> None:
    answer = server.http.request(method, path)
    assert answer.status_code == status
    assert error_of(answer)["message"].endswith("see /docs.")
    assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("path", ["/v1/voices", "/v1/audio/voices"])
def test_voices_are_those_of_the_model_and_those_in_the_folder(server: Served, path: str) -> None:
    names = [voice["id"] for voice in server.http.get(path).json()["voices"]]
    assert names == ["default", "Abebe", "Almaz", "Kebede", "many"]
    assert all(server.speak(voice=name).status_code == 200 for name in names)


def test_a_new_file_is_a_new_voice_at_once(server: Served, voices: Path) -> None:
    (voices / "Later.wav").write_bytes((voices / "Kebede.wav").read_bytes())
    try:
        assert server.speak(voice="Later").status_code == 200
    finally:
        (voices / "Later.wav").unlink()
    assert server.speak(voice="Later").status_code == 400


def test_there_is_one_model(server: Served) -> None:
    (model,) = server.http.get("/v1/models").json()["data"]
    assert (model["id"], model["object"]) == ("amharic-xtts", "model")


def test_the_page_about_it_needs_no_other_computer_and_knows_every_field(server: Served) -> None:
    page = server.http.get("/docs").text
    assert "<script" not in page
    assert "http://" not in page.replace("ADDRESS", "")
    assert "https://" not in page
    assert all(f"<code>{name}</code>" in page for name in [*Asked.model_fields, *SETTINGS])


def test_the_openapi_description_holds_bounds_and_errors(server: Served) -> None:
    call = server.http.get("/openapi.json").json()["paths"][SPEECH]["post"]
    fields = call["requestBody"]["content"]["application/json"]["schema"]["properties"]
    assert (fields["speed"]["minimum"], fields["speed"]["maximum"], fields["speed"]["default"]) == (0.5, 2.0, 1.0)
    assert {"200", "400", "401", "413", "429", "503"} <= set(call["responses"])


def test_sound_arrives_while_the_text_is_still_being_spoken_and_leaving_frees_the_place(server: Served) -> None:
    body = {"input": ENDLESS, "response_format": "pcm"}
    with server.http.stream("POST", SPEECH, json=body) as answer:
        assert len(next(answer.iter_bytes())) > 0
        assert server.counts()["speaking"] == 1
    left = time.monotonic()
    server.wait_until(speaking=0, open=0)
    assert time.monotonic() - left < 1
    assert server.speak().status_code == 200


def test_one_too_many_is_told_when_to_come_again_and_whoever_leaves_makes_room(server: Served) -> None:
    with contextlib.ExitStack() as speaking, contextlib.ExitStack() as waiting:
        speaking.enter_context(server.asking(ENDLESS))
        server.wait_until(speaking=1, waiting=0)
        for _ in range(3):
            waiting.enter_context(server.asking("a"))
        server.wait_until(waiting=3, open=4)
        answer = server.speak()
        assert answer.status_code == 429
        assert int(answer.headers["retry-after"]) >= 1
        assert "4 requests are being answered already; try again in" in error_of(answer)["message"]
        waiting.close()
        server.wait_until(speaking=1, waiting=0, open=1)
    server.wait_until(speaking=0, open=0)


def test_who_does_not_read_holds_up_nobody(server: Served) -> None:
    with server.asking("word " * 90, response_format="wav"):  # 0.9 MB, which nobody fetches
        assert server.speak().status_code == 200
    server.wait_until(open=0)


def test_sound_that_fails_on_its_way_is_never_taken_for_whole(server: Served) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        server.speak(f"one two {BROKEN}")
    answer = server.speak(f"one two {BROKEN}", stream_format="sse")
    last = json.loads(answer.text.strip().split("\n\n")[-1].removeprefix("data: "))
    assert (last["type"], last["error"]["code"]) == ("error", "server_error")
    assert server.speak().status_code == 200


def test_a_fault_of_ours_is_told_without_details_and_logged_with_them(server: Served) -> None:
    answer = server.speak(f"{BROKEN} at once")
    assert answer.status_code == 500
    assert error_of(answer)["message"] == "This is a fault of the server; its log says more."
    assert server.wait_for("ZeroDivisionError: (while saying)") == "while saying"
