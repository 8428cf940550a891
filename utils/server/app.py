"""What the server answers: the calls of OpenAI's speech API that a voice model can serve, and a page about them."""

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from utils.config import DEFAULT_VOICE, SpeechConfig
from utils.core.errors import AmharicTtsError
from utils.server import docs_page
from utils.server.auth import Door
from utils.server.errors import RefusedError, answer, body, refused
from utils.server.formats import MEDIA_TYPES
from utils.server.queue import Desk, Order
from utils.server.schema import Asked, read_request, request_model
from utils.server.voices import Voices

TITLE = "Amharic speech"
ABOUT = "Speaks texts with one model, in the way of OpenAI's speech API. All speech that comes from here is synthetic."
KNOWN_NAMES = frozenset({"", "tts-1", "tts-1-hd", "gpt-4o-mini-tts"})  # which programs send without asking
SIGN_BYTES, SETTINGS_BYTES = 12, 1 << 14  # a sign may be written as two \uXXXX
EVENTS = "text/event-stream"
ERRORS = {400: "Wrong", 401: "No key", 413: "Too large", 429: "Too many waiting", 503: "Loading", 504: "Too slow"}


@dataclass(frozen=True)
class Rules:
    """What is served, and within which limits.

    Attributes:
        name: What the model is called.
        base: Settings of speech that requests begin with.
        voices: Finds what the name of a voice stands for.
        longest: Characters that a text may have.
        seconds: Time that a request may take.
        key: What callers have to send; empty: nothing.
        local: Whether only this computer is served.
    """

    name: str
    base: SpeechConfig
    voices: Voices
    longest: int
    seconds: float
    key: str = field(default="", repr=False)
    local: bool = True


def application(desk: Desk, rules: Rules) -> Door:
    """Put all answers together, behind the door."""
    app = FastAPI(title=TITLE, description=ABOUT, docs_url=None, redoc_url=None)
    app.add_exception_handler(HTTPException, _unknown)
    app.add_exception_handler(AmharicTtsError, _failed)
    _add_speech(app, desk, rules)
    _add_lists(app, desk, rules)
    app.get("/docs", include_in_schema=False)(lambda: HTMLResponse(docs_page.html(app.openapi())))
    largest = rules.longest * SIGN_BYTES + SETTINGS_BYTES
    return Door(app, key=rules.key, local=rules.local, largest=largest)


def _add_speech(app: FastAPI, desk: Desk, rules: Rules) -> None:
    form = request_model(rules.base)
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": why, "content": {"application/json": {}}} for status, why in ERRORS.items()
    }
    names = [*MEDIA_TYPES.values(), EVENTS]
    kinds: dict[str, dict[str, Any]] = {name: {} for name in names}
    responses[200] = {"description": "The sound, sent while it is being made.", "content": kinds}
    schema = {"required": True, "content": {"application/json": {"schema": form.model_json_schema()}}}

    @app.post("/v1/audio/speech", responses=responses, openapi_extra={"requestBody": schema}, response_class=Response)
    async def speak(request: Request) -> Response:
        """Speak a text."""
        _require_json(request)
        asked = read_request(await request.body(), form, rules.longest)
        own = desk.require_ready().voices()
        if asked.model not in KNOWN_NAMES | {rules.name}:
            message = f"There is no model {asked.model[:60]!r}; this one is called {rules.name}."
            raise RefusedError(404, "model_not_found", message, param="model")
        order = Order(
            text=asked.input,
            config=asked.speech(rules.base, rules.voices.reference(asked.voice, own)),
            form=asked.response_format,
            whole=not asked.stream,
            until=time.monotonic() + rules.seconds,
            loop=asyncio.get_running_loop(),
        )
        return await _spoken(desk, order, asked, request)


def _require_json(request: Request) -> None:
    """Refuse what a form on any web site could send."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(415, "not_json", "Send JSON, with the header 'Content-Type: application/json'.")


async def _spoken(desk: Desk, order: Order, asked: Asked, request: Request) -> Response:
    """Wait for the first sound, so that whatever goes wrong before it is told with a status of its own."""
    desk.take(order)
    try:
        first = await _first(order, request)
        headers = {"X-Doubtful-Sentences": str(order.doubtful)} if order.whole else {}
        if asked.stream_format == "sse":
            return _Sound(_events(first, order), order, lambda: desk.leave(order), headers, EVENTS)
        kind = MEDIA_TYPES[asked.response_format]
        if order.whole:
            desk.leave(order)
            return Response(first, 200, headers, kind)
        return _Sound(_sounds(first, order), order, lambda: desk.leave(order), headers, kind)
    except BaseException as error:
        desk.leave(order)
        if isinstance(error, Exception):
            return answer(refused(error))
        raise


async def _first(order: Order, request: Request) -> bytes:
    """Wait for the first bytes, as long as somebody waits for them."""
    wanted = asyncio.ensure_future(order.next())
    gone = asyncio.ensure_future(_gone(request))
    try:
        async with asyncio.timeout_at(order.until):
            await asyncio.wait({wanted, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        if not wanted.done():
            wanted.cancel()
    if not wanted.done():
        raise RefusedError(408, "gone", "The caller has gone.")
    return wanted.result()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _sounds(first: bytes, order: Order) -> AsyncIterator[bytes]:
    content = first
    while content:
        yield content
        content = await order.next()


async def _events(first: bytes, order: Order) -> AsyncIterator[bytes]:
    """Wrap the sound in events; what goes wrong on the way is one of them."""
    try:
        async for content in _sounds(first, order):
            yield _event({"type": "speech.audio.delta", "audio": base64.b64encode(content).decode()})
        yield _event({"type": "speech.audio.done"})
    except Exception as error:  # noqa: BLE001  # told as an event
        yield _event({"type": "error", **body(refused(error))})


def _event(content: object) -> bytes:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n".encode()


class _Sound(StreamingResponse):
    """Sound on its way; whatever ends it, the place at the desk is free at once.

    An answer that fails on its way is broken off without its end, so that nobody takes it for whole.
    """

    def __init__(
        self, content: AsyncIterator[bytes], order: Order, leave: Callable[[], None], headers: dict[str, str], kind: str
    ) -> None:
        super().__init__(content, 200, headers | {"Cache-Control": "no-store"}, kind)
        self.until = order.until
        self.leave = leave

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.leave()

    async def stream_response(self, send: Send) -> None:
        try:
            async with asyncio.timeout_at(self.until):
                await super().stream_response(send)
        except Exception as error:  # noqa: BLE001  # logged; the connection is closed because the end is missing
            refused(error)


def _add_lists(app: FastAPI, desk: Desk, rules: Rules) -> None:
    began = int(time.time())

    @app.get("/health")
    async def health() -> JSONResponse:
        """Say whether texts are spoken already."""
        state = "ok" if desk.speaks else "loading"
        return JSONResponse({"status": state, **desk.counts()}, 200 if desk.speaks else 503)

    @app.get("/v1/models")
    async def models() -> dict[str, object]:
        """List the one model that is served."""
        one = {"id": rules.name, "object": "model", "created": began, "owned_by": "local"}
        return {"object": "list", "data": [one]}

    @app.get("/v1/audio/voices")
    @app.get("/v1/voices")
    async def voices() -> dict[str, object]:
        """List the voices that may be named."""
        own = desk.require_ready().voices()
        known = [*rules.voices.known(own)]
        return {"voices": [{"id": name, "name": name, "default": name == DEFAULT_VOICE} for name in known]}


async def _unknown(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    what = {404: "There is no such address here; see /docs.", 405: "This address takes another method; see /docs."}
    return answer(RefusedError(status, "not_found", what.get(status, "This request cannot be answered.")))


async def _failed(_request: Request, error: Exception) -> Response:
    return answer(refused(error))
