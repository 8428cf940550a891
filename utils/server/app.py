"""The server: an OpenAI-compatible speech endpoint, lists of models and voices, and health.

It binds its address first and responds while the model is still loading.
"""

import logging
import socket
import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from utils.config import DEFAULT_VOICE, SEPARATOR, ServeConfig, SpeechConfig
from utils.core import integrations
from utils.core.addresses import is_loopback
from utils.core.errors import AmharicTtsError
from utils.server.auth import AuthMiddleware, api_key
from utils.server.connections import Server, bind, server_config, url
from utils.server.facts import RequestError
from utils.server.origins import Site, trusted_networks
from utils.server.schema import SpeechBody, error_response, request_error
from utils.server.service import SpeechService
from utils.server.stream import EVENT_STREAM, MEDIA_TYPES, respond
from utils.speech.facts import SessionClosedError
from utils.speech.session import Check, SpeechSession

if TYPE_CHECKING:
    from utils.speech.synthesizer import Synthesizer

DESCRIPTION = "Speaks text with one model. OpenAI-compatible. All audio from this server is synthetic speech."
STRICT = "X-Strict"  # header of clients that want unknown fields to be refused
CHARACTER_BYTES, SETTINGS_BYTES = 12, 1 << 14  # JSON may write a character as two \uXXXX
CORS: dict[str, Any] = {
    "allow_methods": ["GET", "POST"],
    "allow_headers": ["*"],
    "expose_headers": ["X-Ignored", "X-Doubtful-Sentences"],
}
ERRORS = {
    400: "Invalid request",
    401: "Missing or wrong API key",
    413: "Request too large",
    429: "Too many requests",
    503: "Model is loading",
    504: "Timeout",
}

logger = logging.getLogger(__name__)


# Long because session, listener and server are opened and closed around each other.
def serve(
    config: ServeConfig, load: Callable[[SpeechConfig, Check], "Synthesizer"], on_start: Callable[[str], object]
) -> None:
    """Serve until the process is stopped; ``on_start`` gets the address."""
    session = SpeechSession(load, config.active, config.waiting)
    errors = []
    service = SpeechService(config, session)
    key = api_key(config.api_key_file, config.host, proxies=bool(config.trusted_proxies))
    app = create_app(service, key)
    wyoming = integrations.require("listen")(config.wyoming, service) if config.wyoming else None
    with closing(bind(config.host, config.port)) as listener:
        server = _Server(app, service, wyoming)
        on_start(url(config.host, listener.getsockname()[1]))

        def loaded(item: object) -> None:
            if isinstance(item, Exception) and not isinstance(item, SessionClosedError):
                errors.append(item)
                server.should_exit = True

        session.submit(lambda _model: iter(()), service.defaults, deliver=loaded)  # only loads the model
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:  # raised again by uvicorn once everything has ended
            logger.info("Stopped by Ctrl-C.")
        finally:
            session.close()
    if errors:
        raise errors[0]


class _Server(Server):
    """A server that closes the speech session when it stops."""

    def __init__(self, app: object, service: SpeechService, wyoming: Any) -> None:  # noqa: ANN401
        super().__init__(server_config(app, lifespan="off"))
        self.service = service
        self.wyoming = wyoming

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.wyoming is not None:
            await self.wyoming.start()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for open responses for a while, then cancel the rest."""
        if self.wyoming is not None:
            await self.wyoming.stop()
        await super().shutdown(sockets)
        self.service.session.close()


def create_app(service: SpeechService, key: str = "") -> AuthMiddleware:
    """Build the application; clients must send the key unless it is empty."""
    config = service.config
    app = FastAPI(title="Amharic speech", description=DESCRIPTION, redoc_url=None)
    app.add_exception_handler(HTTPException, _not_found)
    app.add_exception_handler(AmharicTtsError, _failed)
    _add_speech(app, service)
    _add_lists(app, service)
    _add_status(app, service)
    if add_routes := integrations.find("add_routes"):
        add_routes(app, service)
    origins, proxies = (filter(None, names.split(SEPARATOR)) for names in (config.origins, config.trusted_proxies))
    site = Site(not config.trusted_proxies and is_loopback(config.host), trusted_networks(proxies), frozenset(origins))
    app.add_middleware(CORSMiddleware, allow_origins=site.origins, **CORS)
    max_bytes = config.longest_text * CHARACTER_BYTES + SETTINGS_BYTES
    return AuthMiddleware(app, site, key=key, max_bytes=max_bytes)


def _add_speech(app: FastAPI, service: SpeechService) -> None:
    @app.post("/v1/audio/speech", **_documentation(service.schema))
    async def create_speech(request: Request) -> Response:
        """Speak a text."""
        media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json":  # a form on any web site could send other types
            raise RequestError("not_json")
        strict = request.headers.get(STRICT, "").lower() in {"1", "true"}
        return await respond(service.open(await request.body(), strict=strict), request)


def _add_lists(app: FastAPI, service: SpeechService) -> None:
    started = int(time.time())

    @app.get("/v1/audio/models")
    @app.get("/v1/models")
    async def list_models() -> dict[str, object]:
        """List the one model of this server."""
        models = [await retrieve_model(service.config.name)]
        return {"object": "list", "data": models, "models": models}  # the last for Open WebUI

    @app.get("/v1/models/{name}")
    async def retrieve_model(name: str) -> dict[str, object]:
        """Describe a model; any name stands for the one model of this server."""
        return {"id": name, "object": "model", "created": started, "owned_by": "local"}

    @app.get("/v1/audio/voices")
    @app.get("/v1/voices")
    async def list_voices() -> dict[str, object]:
        """List the voices."""
        voices = service.voices()
        return {"voices": [{"id": name, "name": name, "default": name == DEFAULT_VOICE} for name in voices]}


def _add_status(app: FastAPI, service: SpeechService) -> None:
    def counts() -> dict[str, int]:
        return {**service.session.counts(), "open": len(service.open_streams)}

    @app.get("/health")
    async def health() -> JSONResponse:
        """Tell whether the model is loaded, and how many requests there are."""
        is_loaded = service.session.loaded is not None
        return JSONResponse({"status": "ok" if is_loaded else "loading", **counts()}, 200 if is_loaded else 503)

    @app.get("/ready")
    async def ready() -> Response:
        """Tell whether a request would be accepted now: 200 or 503."""
        return Response(status_code=200 if service.is_ready else 503)

    @app.get("/metrics")
    async def metrics() -> PlainTextResponse:
        """Count requests and seconds in the text format of Prometheus."""
        text = service.counters.render({**counts(), "ready": int(service.is_ready)})
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


def _documentation(schema: type[SpeechBody]) -> dict[str, Any]:
    """Describe the speech endpoint for OpenAPI."""
    responses = {
        status: {"description": reason, "content": {"application/json": {}}} for status, reason in ERRORS.items()
    }
    types: dict[str, dict[str, Any]] = {name: {} for name in [*MEDIA_TYPES.values(), EVENT_STREAM]}
    responses[200] = {"description": "The audio, streamed as it is generated.", "content": types}
    body = {"required": True, "content": {"application/json": {"schema": schema.model_json_schema()}}}
    return {"responses": responses, "openapi_extra": {"requestBody": body}, "response_class": Response}


async def _not_found(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return error_response(RequestError("not_found" if status < 500 else "server_error"), status)


async def _failed(_request: Request, error: Exception) -> Response:
    return error_response(request_error(error))
