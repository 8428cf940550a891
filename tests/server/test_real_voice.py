"""The server with a model of coqui's classes, started as a person starts it."""

import io
import wave
from collections.abc import Iterator

import pytest

from tests.server.fake_server import SPEECH, Served, served
from tests.speech import amharic_model
from utils.xtts import random_model

pytestmark = pytest.mark.slow
SENTENCE = "ሰላም።"
DISCONNECT_SECONDS = 10  # until the request of a client that disconnected has ended


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served")
    words = ("--model", str(amharic_model.build(folder, layers=2)), "--device", "cpu", "--precision", "fp32")
    with served(*words, module="utils serve") as server:
        yield server


def test_it_speaks_with_the_voices_of_the_model(real: Served) -> None:
    voices = [voice["id"] for voice in real.http.get("/v1/voices").json()["voices"]]
    assert voices == ["default", *random_model.SPEAKERS]
    first, second = (
        real.speak(SENTENCE, response_format="pcm", voice=voice).content for voice in random_model.SPEAKERS
    )
    assert len(first) > 10_000
    assert first != second


def test_unreadable_text_is_refused_before_any_sound(real: Served) -> None:
    answer = real.speak("ሰላም 漢字")
    assert answer.status_code == 400
    assert "漢" in answer.json()["error"]["message"]


def test_a_whole_file_is_spoken_sentence_by_sentence_and_judged(real: Served) -> None:
    answer = real.speak(f"{SENTENCE} {SENTENCE}", stream=False, response_format="wav", tries=1)
    assert 0 <= int(answer.headers["x-doubtful-sentences"]) <= 2
    with wave.open(io.BytesIO(answer.content)) as sound:
        assert sound.getnframes() * 2 < len(answer.content) < sound.getnframes() * 2 + 1000


def test_a_client_that_disconnects_ends_its_request(real: Served) -> None:
    endless = {"input": f"{SENTENCE} " * 800, "response_format": "pcm"}  # forty seconds of work here
    with real.http.stream("POST", SPEECH, json=endless) as answer:
        next(answer.iter_raw())
        assert real.counts()["speaking"] == 1
    real.wait_until(within=DISCONNECT_SECONDS, speaking=0, open=0)
