"""What a client may send, and the errors it gets, both in the shape of OpenAI's speech API."""

import errno
import logging
from collections.abc import Mapping
from typing import Any, Literal, cast

from fastapi.responses import JSONResponse
from pydantic import Field, create_model, field_validator

from utils.config import DEFAULT_VOICE, SpeechConfig
from utils.config.base import Config, setting
from utils.config.facts import InvalidSettingsError, broken
from utils.core.errors import FOLDERS, AmharicTtsError, ConfigError, DiskFullError, NoSpaceError, TextError, explain
from utils.core.storage import parse_json
from utils.media.rates import OUTPUT_RATE
from utils.server.facts import Fault, RequestError
from utils.speech.facts import QueueFullError, SessionClosedError

# Not among them: what multiplies memory and work, and where the model computes.
SETTINGS = (
    "language temperature top_k top_p repetition_penalty speed seed tries sentence_pause paragraph_pause trim loudness "
    "first_codes chunk_codes"
).split()
# Most clients send one of OpenAI's names; where no voice has that name, it is the default voice.
OPENAI_VOICES = frozenset("alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse".split())
OPUS_RATES = (8000, 12_000, 16_000, 24_000, 48_000)
MAX_MESSAGE = 600  # characters; a message may quote the request

logger = logging.getLogger(__name__)


def error_body(error: RequestError) -> dict[str, Mapping[str, str | None]]:
    """Return the JSON of a response."""
    kind = "server_error" if error.status >= 500 else "invalid_request_error"
    return {"error": {"message": str(error), "type": kind, "param": error.param or None, "code": error.fault}}


def error_response(error: RequestError, status: int = 0) -> JSONResponse:
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else {}
    if error.fault == "invalid_api_key":
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse(error_body(error), status or error.status, headers)


def request_error(error: Exception) -> RequestError:
    """Turn any error into one for the client; the details of internal errors go to the log only."""
    fault: Fault
    match error:
        case RequestError():
            return error
        case TimeoutError():
            fault = "timeout"
        case QueueFullError():
            return RequestError("rate_limit_exceeded", retry_after=error.retry_after)
        case SessionClosedError():
            fault = "stopping"
        case DiskFullError() | NoSpaceError() | OSError(errno=errno.ENOSPC | errno.EDQUOT):
            fault = "disk_full"
        case InvalidSettingsError(problems=problems):
            return RequestError("invalid_value", _without_folders(str(error)), param=problems[0].setting)
        case TextError() | ConfigError():
            fault = "invalid_value"
        case _:
            logger.error("%s", explain(error), exc_info=error)
            fault = "speech_failed" if isinstance(error, AmharicTtsError) else "server_error"
    return RequestError(fault, detail=_without_folders(str(error)) if isinstance(error, AmharicTtsError) else "")


def _without_folders(message: str) -> str:
    """Strip folders from paths, and shorten what is too long."""
    short = FOLDERS.sub("", message)
    return short if len(short) <= MAX_MESSAGE else f"{short[:MAX_MESSAGE]} …"


class SpeechBody(Config):
    """A text to speak."""

    input: str = Field(min_length=1, title="Text", description="The text to speak.")
    model: str = setting("", "Model", "Any name: the server has only one model.")
    voice: str = setting(DEFAULT_VOICE, "Voice", 'A name from /v1/audio/voices, also as an object: {"id": "Abebe"}.')
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] = setting(
        "mp3", "Format", "The audio format. pcm is raw 16-bit little-endian mono at 24 kHz."
    )
    stream_format: Literal["audio", "sse"] = setting(
        "audio", "Stream format", "sse sends server-sent events with base64-encoded audio."
    )
    stream: bool = setting(
        True,
        "Stream",
        "Send audio while the text is being spoken. false sends a complete file at the end, with its duration in the "
        "header; suspicious sentences are then retried.",
    )
    sample_rate: int = setting(OUTPUT_RATE, "Sample rate", "Samples per second of the audio.", ge=8000, le=48_000)

    @field_validator("input")
    @classmethod
    def is_not_blank(cls, text: str) -> str:
        if not text.strip():
            raise broken("string_too_short")
        return text

    @field_validator("voice", mode="before")
    @classmethod
    def name_of_voice(cls, voice: object) -> object:
        return voice.get("id") if isinstance(voice, dict) else voice

    def speech_config(self, base: SpeechConfig, reference: str) -> SpeechConfig:
        """Return the speech settings; those that the request leaves out are the server's."""
        settings = {name: getattr(self, name) for name in SETTINGS}
        return SpeechConfig.parse(base.model_dump() | settings | {"reference": reference}, source="The request")


def body_model(base: SpeechConfig) -> type[SpeechBody]:
    """Make the schema of a request, with the settings of SpeechConfig and the defaults of this server."""
    fields: dict[str, Any] = {}
    for name in SETTINGS:
        field = SpeechConfig.model_fields[name]
        default = Field(getattr(base, name), title=field.title, description=field.description)
        fields[name] = (field.rebuild_annotation(), default)
    return cast(
        "type[SpeechBody]", create_model("SpeechRequest", __base__=SpeechBody, __doc__=SpeechBody.__doc__, **fields)
    )


def json_object(content: bytes) -> dict[str, object]:
    """Parse the JSON of a request, which must be an object."""
    try:
        values = parse_json(content)
    except ValueError as error:
        raise RequestError("invalid_json") from error
    if not isinstance(values, dict):
        raise RequestError("invalid_json")
    return values


def read_body(
    content: bytes, model: type[SpeechBody], max_characters: int, *, strict: bool = False
) -> tuple[SpeechBody, list[str]]:
    """Check a request against the schema and the longest text; return also the fields that have no effect.

    Clients send fields of newer or other servers; only ``strict`` refuses them.
    """
    sent = json_object(content)
    known = {name: value for name, value in sent.items() if name in model.model_fields}
    body = model.parse(sent if strict else known, source="The request")
    if len(body.input) > max_characters:
        raise RequestError("text_too_long", count=len(body.input), limit=max_characters, param="input")
    if body.response_format == "opus" and body.sample_rate not in OPUS_RATES:
        detail = f"opus has no sample rate of {body.sample_rate}; use one of {', '.join(map(str, OPUS_RATES))}."
        raise RequestError("invalid_value", detail, param="sample_rate")
    return body, sorted(sent.keys() - known.keys())


def find_voice(name: str, references: Mapping[str, str]) -> str:
    """Return the reference of the voice with this name; a name is never a path."""
    if name not in references and name in OPENAI_VOICES:
        name = DEFAULT_VOICE
    if name not in references:
        first = ", ".join(list(references)[:8])
        detail = f"{name[:60]!r}. Voices: {first}{', …' if len(references) > 8 else ''}."
        raise RequestError("unknown_voice", detail, param="voice")
    return references[name]
