"""The server: an OpenAI-compatible speech endpoint, lists of models and voices, and health.

It binds its address first and responds while the model is still loading.
"""

import logging
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from utils.config import DEFAULT_VOICE, ServeConfig, SpeechConfig
from utils.core.addresses import is_loopback
from utils.core.errors import AmharicTtsError, ConfigError
from utils.server.auth import AuthMiddleware, api_key
from utils.server.schema import RequestError, SpeechBody, VoiceFolder, body_model, read_body, request_error
from utils.server.stream import EVENT_STREAM, MEDIA_TYPES, AudioStream, respond
from utils.speech.session import Check, SpeechSession

if TYPE_CHECKING:
    from utils.speech.synthesizer import Synthesizer

DESCRIPTION = "Speaks text with one model. OpenAI-compatible. All audio from this server is synthetic speech."
MODEL_ALIASES = frozenset({"", "tts-1", "tts-1-hd", "gpt-4o-mini-tts"})  # sent by clients of OpenAI's API
LOADING_RETRY_SECONDS = 5
GRACE_SECONDS = 3  # for open responses when the server is stopped
BACKLOG = 128
CHARACTER_BYTES, SETTINGS_BYTES = 12, 1 << 14  # JSON may write a character as two \uXXXX
ERRORS = {
    400: "Invalid request",
    401: "Missing or wrong API key",
    413: "Request too large",
    429: "Too many requests",
    503: "Model is loading",
    504: "Timeout",
}

logger = logging.getLogger(__name__)


def serve(
    config: ServeConfig, load: Callable[[SpeechConfig, Check], "Synthesizer"], on_start: Callable[[str], object]
) -> None:
    """Serve until the process is stopped; ``on_start`` gets the address."""
    session = SpeechSession(load, max_waiting=config.waiting)
    errors: list[Exception] = []
    app = create_app(config, session, api_key(config.api_key_file, config.host))
    with closing(bind(config.host, config.port)) as listener:
        server = _Server(app, session)
        on_start(url(config.host, listener.getsockname()[1]))

        def do_nothing(_model: "Synthesizer") -> Iterator[None]:
            return iter(())

        def loaded(item: object) -> None:
            if isinstance(item, Exception):
                errors.append(item)
                server.should_exit = True

        session.submit(do_nothing, speech_defaults(config), deliver=loaded)  # only loads the model
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:  # raised again by uvicorn once everything has ended
            logger.info("Stopped by Ctrl-C.")
        finally:
            session.close()
    if errors:
        raise errors[0]


class _Server(uvicorn.Server):
    """A uvicorn server that closes the speech session when it stops."""

    def __init__(self, app: object, session: SpeechSession) -> None:
        super().__init__(
            uvicorn.Config(
                app,  # type: ignore[arg-type]  # any ASGI application
                timeout_graceful_shutdown=GRACE_SECONDS,
                log_level="warning",
                access_log=False,
                server_header=False,
                lifespan="off",
            )
        )
        self.session = session

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for open responses for a while, then cancel the rest."""
        await super().shutdown(sockets)
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # cancelling is no error that needs a traceback
        self.session.close()


def bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        address = (host.strip("[]"), port)
        return socket.create_server(address, family=family, backlog=BACKLOG, reuse_port=False)
    except OSError as error:
        raise ConfigError(
            f"Cannot bind {host} port {port}: {error.strerror}.",
            hint="Choose another --port, or an address of this computer with --host.",
        ) from error


def url(host: str, port: int) -> str:
    name = host.strip("[]")
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def speech_defaults(config: ServeConfig) -> SpeechConfig:
    """Return the settings of speech that requests start from."""
    defaults = SpeechConfig.load(Path(config.speech)) if config.speech else SpeechConfig()
    return defaults.model_copy(update={name: getattr(config, name) for name in ("model", "device", "precision")})


def create_app(config: ServeConfig, session: SpeechSession, key: str = "") -> AuthMiddleware:
    """Build the application; clients must send the key unless it is empty."""
    app = FastAPI(title="Amharic speech", description=DESCRIPTION, redoc_url=None)
    app.add_exception_handler(HTTPException, _not_found)
    app.add_exception_handler(AmharicTtsError, _failed)
    _add_routes(app, config, session)
    max_bytes = config.longest_text * CHARACTER_BYTES + SETTINGS_BYTES
    return AuthMiddleware(app, key=key, local=is_loopback(config.host), max_bytes=max_bytes)


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
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":  # a form on any web site could send other types
            raise RequestError(415, "not_json", "Send JSON, with the header 'Content-Type: application/json'.")
        body = read_body(await request.body(), schema, config.longest_text)
        known_voices = model_voices()
        if body.model not in MODEL_ALIASES | {config.name}:
            message = f"Unknown model {body.model[:60]!r}. This server has {config.name}."
            raise RequestError(404, "model_not_found", message, param="model")
        if len(open_streams) >= config.clients:
            raise RequestError(429, "rate_limit_exceeded", f"{len(open_streams)} requests are open.", retry_after=1)
        speech = body.speech_config(defaults, voices.reference(body.voice, known_voices))
        return await respond(AudioStream(session, body, speech, config.seconds, open_streams), request)

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


async def _not_found(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    messages = {404: "Unknown path; see /docs.", 405: "Method not allowed; see /docs."}
    return RequestError(status, "not_found", messages.get(status, "The request failed.")).response()


async def _failed(_request: Request, error: Exception) -> Response:
    return request_error(error).response()
