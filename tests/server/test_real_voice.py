"""The server with a model of coqui's classes, started as a person starts it."""

import io
import wave
from pathlib import Path

import pytest

from tests.server.fake_server import SPEECH, served
from tests.speech import amharic_model
from tools import random_model

SENTENCE = "ሰላም።"
DISCONNECT_SECONDS = 10  # until the request of a client that disconnected has ended


@pytest.mark.slow
def test_a_real_model_is_served(tmp_path: Path) -> None:
    words = ("--model", str(amharic_model.build(tmp_path, layers=2)), "--device", "cpu", "--precision", "fp32")
    with served(*words, module="utils serve") as server:
        voices = [voice["id"] for voice in server.http.get("/v1/voices").json()["voices"]]
        assert voices == ["default", *random_model.SPEAKERS]
        first, second = (
            server.speak(SENTENCE, response_format="pcm", voice=voice).content for voice in random_model.SPEAKERS
        )
        assert len(first) > 10_000
        assert first != second

        unreadable = server.speak("ሰላም 漢字")
        assert unreadable.status_code == 400
        assert "漢" in unreadable.json()["error"]["message"]

        whole = server.speak(f"{SENTENCE} {SENTENCE}", stream=False, response_format="wav", tries=1)
        assert 0 <= int(whole.headers["x-doubtful-sentences"]) <= 2
        with wave.open(io.BytesIO(whole.content)) as sound:
            assert sound.getnframes() * 2 < len(whole.content) < sound.getnframes() * 2 + 1000

        endless = {"input": f"{SENTENCE} " * 800, "response_format": "pcm"}  # forty seconds of work here
        with server.http.stream("POST", SPEECH, json=endless) as response:
            next(response.iter_raw())
            assert server.counts()["speaking"] == 1
        server.wait_until(within=DISCONNECT_SECONDS, speaking=0, open=0)
