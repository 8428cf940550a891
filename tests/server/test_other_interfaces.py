"""Interfaces that other programs expect: xtts-api-server's calls, OpenAI's voice names, Prometheus, allowed pages."""

import asyncio
import io
import json
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal

import av
import pytest
from openai import BadRequestError, OpenAI
from wyoming.audio import AudioChunk
from wyoming.client import AsyncTcpClient
from wyoming.event import Event
from wyoming.info import Describe, Info
from wyoming.tts import Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeVoice

from tests.server.fake_server import CHUNK, ENDLESS, UNREADABLE, Served, served

WYOMING = 10_293
PAGE = "http://localhost:8000"
OPENAI_FORMATS: tuple[Literal["mp3", "opus", "aac", "flac", "wav"], ...] = ("mp3", "opus", "aac", "flac", "wav")
SETTINGS = {"temperature": "0.5", "speed": "2", "repetition_penalty": 5, "top_p": 0.9, "top_k": 30, "length_penalty": 1}


@pytest.fixture(scope="module")
def open_server(voices: Path) -> Iterator[Served]:
    """A server that one web page may call."""
    words = (
        "--voices",
        str(voices),
        "--origins",
        PAGE,
        "--active",
        "1",
        "--waiting",
        "0",
        "--wyoming",
        f"tcp://127.0.0.1:{WYOMING}",
    )
    with served(*words) as server:
        yield server


def seconds(content: bytes) -> float:
    with av.open(io.BytesIO(content), "r") as file:
        return sum(frame.samples / frame.sample_rate for frame in file.decode(audio=0))


def test_silly_tavern_lists_voices_sets_settings_and_speaks(open_server: Served) -> None:
    http, origin = open_server.http, {"Origin": PAGE}
    voices = http.get("/speakers", headers=origin).json()
    assert [voice["voice_id"] for voice in voices] == http.get("/speakers_list").json()
    assert seconds(http.get(voices[1]["preview_url"]).content) > 0
    assert http.get("/languages").json() == {"languages": {"Amharic": "am"}}
    assert http.post("/set_tts_settings", json=SETTINGS, headers=origin).status_code == 200
    assert http.get("/get_tts_settings").json()["temperature"] == 0.5
    body = {"text": "ሰላም ለዓለም", "speaker_wav": "Abebe.wav", "language": "en"}
    spoken = http.post("/tts_to_audio/", json=body, headers=origin)
    assert spoken.headers["access-control-allow-origin"] == PAGE
    assert seconds(spoken.content) == pytest.approx(2 * CHUNK.size / 24_000)
    assert http.get("/get_models_list").json() == ["amharic-xtts"]
    assert http.post("/switch_model", json={"model_name": "amharic-xtts"}).status_code == 200
    assert "/" not in str(http.get("/get_folders").json())
    assert seconds(http.get("/sample/Abebe.wav").content) > 0
    streamed = http.get("/tts_stream/", params=body)
    assert (streamed.status_code, streamed.content) == (200, spoken.content)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/set_tts_settings", {"temperature": 99}, 400),
        ("/set_tts_settings", {"top_k": "many"}, 400),
        ("/set_tts_settings", [], 400),
        ("/tts_to_audio/", {"text": ""}, 400),
        ("/set_output", {"output_folder": "/etc"}, 403),
        ("/set_speaker_folder", {"speaker_folder": "/etc"}, 403),
        ("/tts_to_file", {"text": "a", "speaker_wav": "Abebe", "language": "am", "file_name_or_path": "/etc/a"}, 403),
        ("/switch_model", {"model_name": "other"}, 400),
        ("/tts_to_audio/", {"text": "a", "speaker_wav": "../../etc/passwd"}, 400),
    ],
)
def test_invalid_calls_are_refused(open_server: Served, path: str, body: object, status: int) -> None:
    assert open_server.http.post(path, json=body).status_code == status


def test_only_the_named_page_may_call(open_server: Served) -> None:
    ask = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}
    for origin, status in ((PAGE, 200), ("http://evil.example", 403)):
        preflight = open_server.http.options("/v1/audio/speech", headers={"Origin": origin, **ask})
        assert preflight.status_code == status
    foreign = open_server.http.get("/tts_stream", params={"text": "a"}, headers={"Sec-Fetch-Site": "cross-site"})
    assert foreign.status_code == 403


def test_the_client_of_openai_speaks_streams_and_reads_errors(server: Served) -> None:
    with OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == [server.http.get("/v1/models").json()["data"][0]["id"]]
        speak = partial(client.audio.speech.create, model="tts-1", voice="alloy")
        for form in OPENAI_FORMATS:
            sound = speak(input="one two", response_format=form).content
            assert seconds(sound) == pytest.approx(2 * CHUNK.size / 24_000, abs=0.1)
        streaming = client.audio.speech.with_streaming_response.create
        with streaming(model="tts-1", voice="alloy", input="one two", response_format="pcm", speed=1.0) as stream:
            assert b"".join(stream.iter_bytes()) == server.speak(response_format="pcm").content
        with pytest.raises(BadRequestError, match=UNREADABLE):
            speak(input=UNREADABLE)


def test_every_call_of_openais_client_is_answered_as_its_documentation_says(server: Served) -> None:
    with OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        assert client.models.retrieve("gpt-4o-mini-tts").id == "gpt-4o-mini-tts"
        raw = client.audio.speech.with_raw_response
        spoken = raw.create(model="gpt-4o-mini-tts", voice={"id": "Abebe"}, input="one two", instructions="Whisper.")
        assert spoken.headers["x-ignored"] == "instructions"
        assert seconds(spoken.content) == pytest.approx(2 * CHUNK.size / 24_000, abs=0.1)
        for speed in (0.25, 4.0):
            client.audio.speech.create(model="m", voice="coral", input="one", response_format="pcm", speed=speed)
        events = client.audio.speech.with_streaming_response
        with events.create(model="m", voice="coral", input="one two", stream_format="sse") as stream:
            done = json.loads([line for line in stream.iter_lines() if line][-1].removeprefix("data: "))
        assert done["type"] == "speech.audio.done"
        assert done["usage"]["total_tokens"] == done["usage"]["input_tokens"] + done["usage"]["output_tokens"]


def test_metrics_and_readiness(open_server: Served) -> None:
    def counted(pattern: str) -> float:
        match = re.search(rf"^amharic_tts_{pattern} (\S+)$", open_server.http.get("/metrics").text, re.MULTILINE)
        return float(match[1]) if match else 0.0

    before = counted(r'responses_total\{status="200"\}')
    assert open_server.speak().status_code == 200
    assert counted(r'responses_total\{status="200"\}') == before + 1
    assert counted(r'first_audio_seconds_bucket\{le="\+Inf"\}') == counted("first_audio_seconds_count") >= 1
    assert counted("bytes_sent_total") > 1000
    assert open_server.http.get("/ready").status_code == 200
    with open_server.open_request(ENDLESS):
        open_server.wait_until(speaking=1)
        assert open_server.http.get("/ready").status_code == 503
    open_server.wait_until(open=0)


class Heard:
    """What a client hears, and the kinds of the events, each once in a row."""

    def __init__(self) -> None:
        self.kinds, self.sound = [""], b""

    async def more(self, client: AsyncTcpClient) -> None:
        event = await read(client)
        self.kinds += [event.type] if self.kinds[-1] != event.type else []
        self.sound += AudioChunk.from_event(event).audio if AudioChunk.is_type(event.type) else b""


def test_wyoming_clients_list_voices_and_hear_speech(open_server: Served) -> None:
    async def converse() -> tuple[list[str], bytes, list[str]]:
        async with AsyncTcpClient("127.0.0.1", WYOMING) as client:
            await client.write_event(Describe().event())
            (program,) = Info.from_event(await read(client)).tts
            heard = Heard()
            for text in ("አንድ ሁለት", UNREADABLE):
                await client.write_event(Synthesize(text, SynthesizeVoice("Abebe")).event())
                while heard.kinds[-1] not in {"audio-stop", "error"}:
                    await heard.more(client)
                heard.kinds.append("-")
            return [voice.name for voice in program.voices], heard.sound, heard.kinds[1:]

    voices, sound, kinds = asyncio.run(converse())
    assert voices == ["default", "Abebe", "Almaz", "Kebede", "many"]
    assert sound == open_server.speak("አንድ ሁለት", voice="Abebe", response_format="pcm").content
    assert kinds == ["audio-start", "audio-chunk", "audio-stop", "-", "error", "-"]


def test_a_text_that_arrives_in_parts_is_spoken_sentence_by_sentence(open_server: Served) -> None:
    async def converse() -> tuple[list[str], bytes]:
        async with AsyncTcpClient("127.0.0.1", WYOMING) as client:
            await client.write_event(Describe().event())
            assert Info.from_event(await read(client)).tts[0].supports_synthesize_streaming
            await client.write_event(SynthesizeStart(SynthesizeVoice("Abebe")).event())
            for part in ("አንድ ሁ", "ለት። ሦ"):
                await client.write_event(SynthesizeChunk(part).event())
            heard = Heard()
            while len(heard.sound) < 2 * 2 * CHUNK.size:  # the first sentence sounds before the text has ended
                await heard.more(client)
            for sent in (SynthesizeChunk("ስት"), Synthesize("አንድ ሁለት። ሦስት", SynthesizeVoice("Abebe")), SynthesizeStop()):
                await client.write_event(sent.event())
            while heard.kinds[-1] not in {"synthesize-stopped", "error"}:
                await heard.more(client)
            return heard.kinds[1:], heard.sound

    kinds, sound = asyncio.run(converse())
    assert kinds == ["audio-start", "audio-chunk", "audio-stop", "synthesize-stopped"]
    assert len(sound) == 3 * 2 * CHUNK.size


async def read(client: AsyncTcpClient) -> Event:
    event = await asyncio.wait_for(client.read_event(), 30)
    assert event is not None
    return event
