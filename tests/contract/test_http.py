"""What the speech server answers to other programs."""

import io
import wave
from collections.abc import Iterator
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.server.fake_server import served

pytestmark = pytest.mark.slow

TEXT = "ሰላም።"
SPEECH = "/v1/audio/speech"


@pytest.fixture(scope="module")
def http(output: Path) -> Iterator[httpx.Client]:
    words = ("--model", str(output / "project" / "ready"), "--device", "cpu", "--precision", "fp32")
    with served(*words, module="utils serve") as server:
        yield server.http


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/v1/models", "data"),
        ("/v1/voices", "voices"),
        ("/v1/audio/voices", "voices"),
        ("/openapi.json", "paths"),
        ("/health", "status"),
        ("/get_tts_settings", "temperature"),
    ],
)
def test_a_list_is_json_with_a_key(path: str, key: str, http: httpx.Client) -> None:
    assert key in http.get(path).json()


@pytest.mark.parametrize("path", ["/ready", "/metrics", "/docs", "/speakers_list", "/speakers", "/languages"])
def test_a_page_is_there(path: str, http: httpx.Client) -> None:
    assert http.get(path).status_code == 200


@pytest.mark.parametrize(
    ("kind", "media_type"),
    [
        ("wav", "audio/wav"),
        ("pcm", "audio/pcm"),
        ("mp3", "audio/mpeg"),
        ("opus", "audio/ogg"),
        ("flac", "audio/flac"),
        ("aac", "audio/aac"),
    ],
)
def test_speech_has_the_format_that_was_asked_for(kind: str, media_type: str, http: httpx.Client) -> None:
    response = http.post(SPEECH, json={"input": TEXT, "response_format": kind})
    assert response.status_code == 200
    assert response.headers["content-type"].startswith(media_type)
    assert len(response.content) > 1000


def test_the_same_seed_gives_the_same_sound(http: httpx.Client) -> None:
    request = {"input": TEXT, "response_format": "pcm", "seed": 3}
    first, second = (http.post(SPEECH, json=request).content for _ in range(2))
    assert first == second


def test_another_seed_gives_another_sound(http: httpx.Client) -> None:
    first, second = (
        http.post(SPEECH, json={"input": TEXT, "response_format": "pcm", "seed": seed}).content for seed in (3, 4)
    )
    assert first != second


def test_xtts_api_answers_with_a_wav_file(http: httpx.Client) -> None:
    request = {"text": TEXT, "speaker_wav": "default", "language": "am"}
    with wave.open(io.BytesIO(http.post("/tts_to_audio/", json=request).content)) as sound:
        assert (sound.getnchannels(), sound.getframerate()) == (1, 24_000)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "input"),
        ({"input": ""}, "input"),
        ({"input": "漢"}, "漢"),
        ({"input": TEXT, "voice": "nobody"}, "nobody"),
        ({"input": TEXT, "response_format": "tape"}, "response_format"),
        ({"input": TEXT, "speed": 9}, "speed"),
        ({"input": TEXT, "temperature": "hot"}, "temperature"),
    ],
)
def test_a_bad_request_is_an_error_of_openai(body: dict[str, object], words: str, http: httpx.Client) -> None:
    response = http.post(SPEECH, json=body)
    assert response.status_code in {400, 404, 422}
    assert words in response.json()["error"]["message"]


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nowhere", 404), ("GET", SPEECH, 405)])
def test_another_path_or_method_is_refused_in_json(method: str, path: str, status: int, http: httpx.Client) -> None:
    response = http.request(method, path)
    assert response.status_code == status
    assert response.json()["error"]["message"]
