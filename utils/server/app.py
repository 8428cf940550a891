"""The routes of the server: an OpenAI-compatible speech endpoint, lists of models and voices, and health."""

import asyncio
import base64
import contextlib
import json
import tempfile
import time
from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from utils.config import DEFAULT_VOICE, ServeConfig, SpeechConfig
from utils.core.addresses import is_loopback
from utils.core.errors import AmharicTtsError
from utils.media.audio import Samples
from utils.media.encoding import AUDIO_FORMATS, encode_stream, to_pcm16, write_audio
from utils.media.rates import OUTPUT_RATE
from utils.server.auth import AuthMiddleware
from utils.server.errors import RequestError, request_error
from utils.server.schema import SpeechBody, VoiceFolder, body_model, read_body
from utils.speech.session import SpeechSession
from utils.speech.types import silence

if TYPE_CHECKING:
    from utils.speech.synthesizer import Synthesizer

DESCRIPTION = "Speaks text with one model. OpenAI-compatible. All audio from this server is synthetic speech."
MODEL_ALIASES = frozenset({"", "tts-1", "tts-1-hd", "gpt-4o-mini-tts"})  # sent by clients of OpenAI's API
LOADING_RETRY_SECONDS = 5
CHARACTER_BYTES, SETTINGS_BYTES = 12, 1 << 14  # JSON may write a character as two \uXXXX
PCM, EVENT_STREAM = "pcm", "text/event-stream"
MEDIA_TYPES = {name: AUDIO_FORMATS[f".{name}"].mime for name in ("mp3", "opus", "aac", "flac", "wav")} | {
    PCM: "audio/pcm"
}
ERRORS = {
    400: "Invalid request",
    401: "Missing or wrong API key",
    413: "Request too large",
    429: "Too many requests",
    503: "Model is loading",
    504: "Timeout",
}


def create_app(config: ServeConfig, session: SpeechSession, key: str = "") -> AuthMiddleware:
    """Build the application.

    Args:
        config: The settings of the server.
        session: Speaks the texts.
        key: What clients must send; empty: nothing.
    """
    app = FastAPI(title="Amharic speech", description=DESCRIPTION, redoc_url=None)
    app.add_exception_handler(HTTPException, _not_found)
    app.add_exception_handler(AmharicTtsError, _failed)
    _add_routes(app, config, session)
    max_bytes = config.longest_text * CHARACTER_BYTES + SETTINGS_BYTES
    return AuthMiddleware(app, key=key, local=is_loopback(config.host), max_bytes=max_bytes)


def speech_defaults(config: ServeConfig) -> SpeechConfig:
    """Return the settings of speech that requests start from."""
    defaults = SpeechConfig.load(Path(config.speech)) if config.speech else SpeechConfig()
    return defaults.model_copy(update={name: getattr(config, name) for name in ("model", "device", "precision")})


def _add_routes(app: FastAPI, config: ServeConfig, session: SpeechSession) -> None:
    defaults, started = speech_defaults(config), int(time.time())
    voices = VoiceFolder(Path(config.voices) if config.voices else None)
    schema = body_model(defaults)
    open_streams: set[AudioStream] = set()

    def model_voices() -> tuple[str, ...]:
        if session.loaded is None:
            message = "The model is still loading; try again in a few seconds."
            raise RequestError(503, "loading", message, retry_after=LOADING_RETRY_SECONDS)
        return session.loaded.synthesizer.voices()

    @app.post("/v1/audio/speech", **_documentation(schema))
    async def create_speech(request: Request) -> Response:
        """Speak a text."""
        _require_json(request)
        body = read_body(await request.body(), schema, config.longest_text)
        known_voices = model_voices()
        if body.model not in MODEL_ALIASES | {config.name}:
            message = f"Unknown model {body.model[:60]!r}. This server has {config.name}."
            raise RequestError(404, "model_not_found", message, param="model")
        if len(open_streams) >= config.clients:
            raise RequestError(429, "rate_limit_exceeded", f"{len(open_streams)} requests are open.", retry_after=1)
        speech = body.speech_config(defaults, voices.reference(body.voice, known_voices))
        stream = AudioStream(session, body, speech, config.seconds, open_streams)
        return await _respond(stream, request)

    @app.get("/health")
    async def health() -> JSONResponse:
        """Tell whether the server is ready."""
        is_ready = session.loaded is not None
        content = {"status": "ok" if is_ready else "loading", **session.counts(), "open": len(open_streams)}
        return JSONResponse(content, 200 if is_ready else 503)

    @app.get("/v1/models")
    async def list_models() -> dict[str, object]:
        """List the one model of this server."""
        model = {"id": config.name, "object": "model", "created": started, "owned_by": "local"}
        return {"object": "list", "data": [model]}

    @app.get("/v1/audio/voices")
    @app.get("/v1/voices")
    async def list_voices() -> dict[str, object]:
        """List the voices."""
        names = voices.references(model_voices())
        return {"voices": [{"id": name, "name": name, "default": name == DEFAULT_VOICE} for name in names]}


def _documentation(schema: type[SpeechBody]) -> dict[str, Any]:
    """Describe the speech endpoint for OpenAPI."""
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": reason, "content": {"application/json": {}}} for status, reason in ERRORS.items()
    }
    types: dict[str, dict[str, Any]] = {name: {} for name in [*MEDIA_TYPES.values(), EVENT_STREAM]}
    responses[200] = {"description": "The audio, streamed as it is generated.", "content": types}
    body = {"required": True, "content": {"application/json": {"schema": schema.model_json_schema()}}}
    return {"responses": responses, "openapi_extra": {"requestBody": body}, "response_class": Response}


def _require_json(request: Request) -> None:
    """Refuse what a form on any web site could send."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise RequestError(415, "not_json", "Send JSON, with the header 'Content-Type: application/json'.")


class AudioStream:
    """The encoded audio of one request, on its way from the thread of the session to the client.

    Args:
        session: Speaks the text.
        body: The request.
        config: Its settings of speech.
        seconds: The time limit of the request.
        open_streams: Every stream that is not closed.
    """

    def __init__(
        self,
        session: SpeechSession,
        body: SpeechBody,
        config: SpeechConfig,
        seconds: float,
        open_streams: set["AudioStream"],
    ) -> None:
        self.body = body
        self.flagged = 0  # sentences that the guards flagged; only counted without streaming
        loop = asyncio.get_running_loop()
        self.deadline = loop.time() + seconds
        self._config = config
        self._chunks: asyncio.Queue[bytes | Exception | None] = asyncio.Queue()

        def deliver(item: bytes | Exception | None) -> None:
            with contextlib.suppress(RuntimeError):  # the server has stopped, and nobody waits any more
                loop.call_soon_threadsafe(self._chunks.put_nowait, item)

        self._request = session.submit(self._encode, config, deliver=deliver)
        self._open_streams = open_streams
        open_streams.add(self)

    async def next_chunk(self) -> bytes:
        """Wait for the next chunk; it is empty at the end."""
        chunk = await self._chunks.get()
        if isinstance(chunk, Exception):
            raise chunk
        return chunk or b""

    def close(self) -> None:
        """Free its place in the queue."""
        self._request.cancel()
        self._open_streams.discard(self)

    def _encode(self, model: "Synthesizer") -> Iterator[bytes]:
        whole = not self.body.stream
        sound = self._sentences(model) if whole else model.stream(self.body.input, self._config)
        with closing(sound):
            yield from filter(None, encode(sound, self.body.response_format, whole=whole))

    def _sentences(self, model: "Synthesizer") -> Generator[Samples, None, None]:
        with closing(model.utterances(self.body.input, self._config)) as sentences:
            for sentence in sentences:
                self.flagged += bool(sentence.flags)
                yield sentence.samples
                yield silence(sentence.pause)


def encode(sound: Iterable[Samples], name: str, *, whole: bool) -> Iterator[bytes]:
    """Encode audio.

    Args:
        sound: Consecutive parts at 24 000 Hz.
        name: A format of ``MEDIA_TYPES``.
        whole: Yield all of it at the end, so that the header tells the duration.
    """
    if name == PCM:
        parts = map(to_pcm16, sound)
        yield from [b"".join(parts)] if whole else parts
    elif whole:
        with tempfile.TemporaryDirectory(prefix="speech-") as folder:
            path = Path(folder, f"speech.{name}")
            write_audio(path, sound, OUTPUT_RATE)
            yield path.read_bytes()
    else:
        yield from encode_stream(sound, f".{name}")


async def _respond(stream: AudioStream, request: Request) -> Response:
    """Wait for the first chunk, so that an error before it gets its own status."""
    try:
        first = await _first_chunk(stream, request)
    except BaseException as error:
        stream.close()
        if isinstance(error, Exception):
            return request_error(error).response()
        raise
    headers = {} if stream.body.stream else {"X-Doubtful-Sentences": str(stream.flagged)}
    if stream.body.stream_format == "sse":
        return _AudioResponse(_events(first, stream), stream, headers, EVENT_STREAM)
    media_type = MEDIA_TYPES[stream.body.response_format]
    if not stream.body.stream:
        stream.close()
        return Response(first, 200, headers, media_type)
    return _AudioResponse(_chunks(first, stream), stream, headers, media_type)


async def _first_chunk(stream: AudioStream, request: Request) -> bytes:
    """Wait for the first chunk, unless the client disconnects."""
    chunk = asyncio.ensure_future(stream.next_chunk())
    disconnect = asyncio.ensure_future(_disconnect(request))
    try:
        async with asyncio.timeout_at(stream.deadline):
            await asyncio.wait({chunk, disconnect}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        disconnect.cancel()
        if not chunk.done():
            chunk.cancel()
    if not chunk.done():
        raise RequestError(408, "gone", "The client has disconnected.")
    return chunk.result()


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _chunks(first: bytes, stream: AudioStream) -> AsyncIterator[bytes]:
    chunk = first
    while chunk:
        yield chunk
        chunk = await stream.next_chunk()


async def _events(first: bytes, stream: AudioStream) -> AsyncIterator[bytes]:
    """Wrap the audio in server-sent events; an error is one of them."""
    try:
        async for chunk in _chunks(first, stream):
            yield _event({"type": "speech.audio.delta", "audio": base64.b64encode(chunk).decode()})
        yield _event({"type": "speech.audio.done"})
    except Exception as error:  # noqa: BLE001  # sent as an event
        yield _event({"type": "error", **request_error(error).body()})


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


async def _not_found(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    messages = {404: "Unknown path; see /docs.", 405: "Method not allowed; see /docs."}
    return RequestError(status, "not_found", messages.get(status, "The request failed.")).response()


async def _failed(_request: Request, error: Exception) -> Response:
    return request_error(error).response()
