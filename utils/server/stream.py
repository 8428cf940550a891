"""The encoded audio of a request: one file, chunks as they are spoken, or server-sent events."""

import asyncio
import base64
import contextlib
import json
import re
import tempfile
from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from utils.config import SpeechConfig
from utils.media.audio import Samples, resample_parts
from utils.media.encoding import AUDIO_FORMATS, encode_stream, to_pcm16, write_audio
from utils.media.rates import OUTPUT_RATE
from utils.server.counters import Counters
from utils.server.facts import RequestError
from utils.server.schema import SpeechBody, error_body, error_response, request_error
from utils.speech.session import SpeechSession
from utils.speech.types import silence

if TYPE_CHECKING:
    from utils.speech.synthesizer import Synthesizer

IGNORED, MAX_IGNORED = "X-Ignored", 500  # characters
NOT_A_NAME = re.compile(r"[^\w.-]", re.ASCII)
SAMPLES_PER_CODE = 1024
PCM = "pcm"
EVENT_STREAM = "text/event-stream"
MEDIA_TYPES = {name: AUDIO_FORMATS[f".{name}"].mime for name in ("mp3", "opus", "aac", "flac", "wav")} | {
    PCM: "audio/pcm"
}


class AudioStream:
    """Carries the audio of one request from the thread of the session to the client, within ``seconds``."""

    def __init__(
        self,
        session: SpeechSession,
        body: SpeechBody,
        config: SpeechConfig,
        seconds: float,
        open_streams: set["AudioStream"],
        counters: Counters,
    ) -> None:
        self.body = body
        self.flagged = 0  # sentences that the guards flagged; only counted without streaming
        self.ignored: list[str] = []  # fields of the request that have no effect
        self.samples = 0  # spoken so far, at 24 kHz
        loop = asyncio.get_running_loop()
        self.counters = counters
        self.started = loop.time()
        self.deadline = self.started + seconds
        self._config = config
        self._chunks: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()

        def deliver(item: bytes | Exception | None) -> None:
            with contextlib.suppress(RuntimeError):  # the server has stopped; no one is waiting
                loop.call_soon_threadsafe(self._chunks.put_nowait, item)

        self._request = session.submit(self._encode, config, deliver=deliver)
        self._open_streams = open_streams
        open_streams.add(self)

    async def next_chunk(self) -> bytes:
        """Wait for the next chunk; it is empty at the end."""
        chunk = await self._chunks.get()
        if isinstance(chunk, Exception):
            raise chunk
        self.counters.bytes_sent += len(chunk or b"")
        return chunk or b""

    async def chunks(self, first: bytes) -> AsyncIterator[bytes]:
        chunk = first
        while chunk:
            yield chunk
            chunk = await self.next_chunk()

    async def events(self, first: bytes) -> AsyncIterator[bytes]:
        """Wrap the audio in server-sent events; an error is one of them."""
        try:
            async for chunk in self.chunks(first):
                yield _event({"type": "speech.audio.delta", "audio": base64.b64encode(chunk).decode()})
            yield _event({"type": "speech.audio.done", "usage": self.usage()})
        except Exception as error:  # noqa: BLE001  # sent as an event
            yield _event({"type": "error", **error_body(request_error(error))})

    def usage(self) -> dict[str, int]:
        """Count what OpenAI calls tokens: the characters of the text, and the audio codes that were spoken."""
        sent = len(self.body.input)
        spoken = round(self.samples / SAMPLES_PER_CODE)
        return {"input_tokens": sent, "output_tokens": spoken, "total_tokens": sent + spoken}

    def close(self) -> None:
        """Free its place in the queue."""
        self._request.cancel()
        self._open_streams.discard(self)

    def _encode(self, model: "Synthesizer") -> Iterator[bytes]:
        whole = not self.body.stream
        sound = self._sentences(model) if whole else model.stream(self.body.input, self._config)
        with closing(sound):
            changed = resample_parts(self._count(sound), OUTPUT_RATE, self.body.sample_rate)
            yield from filter(None, encode(changed, self.body.response_format, self.body.sample_rate, whole=whole))

    def _count(self, sound: Iterable[Samples]) -> Iterator[Samples]:
        for samples in sound:
            self.samples += samples.size
            yield samples

    def _sentences(self, model: "Synthesizer") -> Generator[Samples, None, None]:
        with closing(model.utterances(self.body.input, self._config)) as sentences:
            for sentence in sentences:
                self.flagged += bool(sentence.flags)
                yield sentence.samples
                yield silence(sentence.pause)


def encode(sound: Iterable[Samples], name: str, rate: int, *, whole: bool) -> Iterator[bytes]:
    """Encode audio as it comes; with ``whole``, all at the end, with its duration in the header."""
    if name == PCM:
        parts = map(to_pcm16, sound)
        yield from [b"".join(parts)] if whole else parts
    elif whole:
        with tempfile.TemporaryDirectory(prefix="speech-") as folder:
            path = Path(folder, f"speech.{name}")
            write_audio(path, sound, rate)
            yield path.read_bytes()
    else:
        yield from encode_stream(sound, f".{name}", rate)


async def respond(stream: AudioStream, request: Request) -> Response:
    """Wait for the first chunk, so that an error before it gets its own status."""
    try:
        first = await _first_chunk(stream, request)
    except BaseException as error:
        stream.close()
        if isinstance(error, Exception):
            answer = request_error(error)
            stream.counters.count(answer.status)
            return error_response(answer)
        raise
    stream.counters.count(200)
    stream.counters.count_first_audio(asyncio.get_running_loop().time() - stream.started)
    headers = {} if stream.body.stream else {"X-Doubtful-Sentences": str(stream.flagged)}
    if stream.ignored:
        headers[IGNORED] = ", ".join(NOT_A_NAME.sub("?", name) for name in stream.ignored)[:MAX_IGNORED]
    if stream.body.stream_format == "sse":
        return _AudioResponse(stream.events(first), stream, headers, EVENT_STREAM)
    media_type = MEDIA_TYPES[stream.body.response_format]
    if not stream.body.stream:
        stream.close()
        return Response(first, 200, headers, media_type)
    return _AudioResponse(stream.chunks(first), stream, headers, media_type)


async def _first_chunk(stream: AudioStream, request: Request) -> bytes:
    """Wait for the first chunk, unless the client disconnects."""

    async def disconnected() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    chunk = asyncio.ensure_future(stream.next_chunk())
    disconnect = asyncio.ensure_future(disconnected())
    try:
        async with asyncio.timeout_at(stream.deadline):
            await asyncio.wait({chunk, disconnect}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        disconnect.cancel()
        if not chunk.done():
            chunk.cancel()
    if not chunk.done():
        raise RequestError("gone")
    return chunk.result()


def _event(content: object) -> bytes:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n".encode()


class _AudioResponse(StreamingResponse):
    """Streamed audio. An error on the way closes the connection without the end, so nobody takes it for complete."""

    def __init__(
        self, content: AsyncIterator[bytes], stream: AudioStream, headers: dict[str, str], media_type: str
    ) -> None:
        super().__init__(content, 200, headers | {"Cache-Control": "no-store"}, media_type)
        self.stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.stream.close()

    async def stream_response(self, send: Send) -> None:
        try:
            async with asyncio.timeout_at(self.stream.deadline):
                await super().stream_response(send)
        except Exception as error:  # noqa: BLE001  # logged there
            request_error(error)
