"""What a client may send, and the errors it gets, both in the shape of OpenAI's speech API."""

import errno
import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from fastapi.responses import JSONResponse
from pydantic import Field, create_model, field_validator

from utils.config import DEFAULT_VOICE, SpeechConfig
from utils.config.base import Config
from utils.config.facts import Rule, broken
from utils.core.errors import AmharicTtsError, ConfigError, DiskFullError, NoSpaceError, TextError
from utils.core.storage import parse_json
from utils.media.rates import OUTPUT_RATE
from utils.speech.facts import QueueFullError, SessionClosedError
from utils.studio.reference_clips import named_voices

# Not among them: what multiplies memory and work, and where the model computes.
SETTINGS = (
    "language temperature top_k top_p repetition_penalty speed seed tries sentence_pause paragraph_pause trim loudness "
    "first_codes chunk_codes"
).split()
# Most clients send one of OpenAI's names; where no voice has that name, it is the default voice.
OPENAI_VOICES = frozenset("alloy ash ballad cedar coral echo fable marin nova onyx sage shimmer verse".split())
OPUS_RATES = (8000, 12_000, 16_000, 24_000, 48_000)
MAX_MESSAGE = 600  # characters; a message may quote the request
FOLDERS = re.compile(r"(?:[A-Za-z]:)?(?:[\\/][^\s\\/:,;]+)+[\\/](?=[^\s\\/])")  # none of the client's business

logger = logging.getLogger(__name__)


class RequestError(AmharicTtsError):
    """A request that gets an error as its response."""

    def __init__(self, status: int, code: str, message: str, *, param: str = "", retry_after: int = 0) -> None:
        super().__init__(message)
        self.status = status
        self.code = code  # one word for programs
        self.param = param  # the field of the request that is wrong
        self.retry_after = retry_after  # seconds after which trying again makes sense; 0 if it does not

    def body(self) -> dict[str, Mapping[str, str | None]]:
        """Return the JSON of the response."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return {"error": {"message": str(self), "type": kind, "param": self.param or None, "code": self.code}}

    def response(self) -> JSONResponse:
        headers = {"Retry-After": str(self.retry_after)} if self.retry_after else {}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        return JSONResponse(self.body(), self.status, headers)


def request_error(error: Exception) -> RequestError:
    """Turn any error into one for the client; the details of internal errors go to the log only."""
    known = error if isinstance(error, RequestError) else _known(error)
    if known is not None:
        return known
    logger.error("A request failed.", exc_info=error)
    is_ours = isinstance(error, AmharicTtsError)
    message = _without_folders(str(error)) if is_ours else "Internal server error; see the log of the server."
    return RequestError(500, "speech_failed" if is_ours else "server_error", message)


def _known(error: Exception) -> RequestError | None:
    """Return what a client is told of an error that may well happen."""
    match error:
        case TimeoutError():
            return RequestError(504, "timeout", "The text was not spoken within the time limit of a request.")
        case QueueFullError():
            return RequestError(429, "rate_limit_exceeded", str(error), retry_after=error.retry_after)
        case SessionClosedError():
            return RequestError(503, "stopping", "The server is shutting down.")
        case DiskFullError() | NoSpaceError() | OSError(errno=errno.ENOSPC | errno.EDQUOT):
            return RequestError(507, "disk_full", "The disk of the server is full.")
        case TextError() | ConfigError():
            return RequestError(400, "invalid_value", _without_folders(str(error)))
    return None


def _without_folders(message: str) -> str:
    """Strip folders from paths, and shorten what is too long."""
    short = FOLDERS.sub("", message)
    return short if len(short) <= MAX_MESSAGE else f"{short[:MAX_MESSAGE]} …"


class SpeechBody(Config):
    """A text to speak."""

    input: str = Field(min_length=1, title="Text", description="The text to speak.")
    model: str = Field("", title="Model", description="Any name: the server has only one model.")
    voice: str = Field(
        DEFAULT_VOICE, title="Voice", description='A name from /v1/audio/voices, also as an object: {"id": "Abebe"}.'
    )
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] = Field(
        "mp3", title="Format", description="The audio format. pcm is raw 16-bit little-endian mono at 24 kHz."
    )
    stream_format: Literal["audio", "sse"] = Field(
        "audio", title="Stream format", description="sse sends server-sent events with base64-encoded audio."
    )
    stream: bool = Field(
        True,
        title="Stream",
        description="Send audio while the text is being spoken. false sends a complete file at the end, with its "
        "duration in the header; suspicious sentences are then retried.",
    )
    sample_rate: int = Field(
        OUTPUT_RATE, ge=8000, le=48_000, title="Sample rate", description="Samples per second of the audio."
    )

    @field_validator("input")
    @classmethod
    def is_not_blank(cls, text: str) -> str:
        if not text.strip():
            raise broken(Rule.EMPTY)
        return text

    @field_validator("voice", mode="before")
    @classmethod
    def name_of_voice(cls, voice: object) -> object:
        return voice.get("id") if isinstance(voice, dict) else voice

    def speech_config(self, base: SpeechConfig, reference: str) -> SpeechConfig:
        """Return the speech settings; those that the request leaves out are the server's."""
        settings = {name: getattr(self, name) for name in SETTINGS}
        return SpeechConfig.parse(base.model_dump() | settings | {"reference": reference}, source="the request")


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
        raise RequestError(400, "invalid_json", "The body is not valid JSON.") from error
    if not isinstance(values, dict):
        raise RequestError(400, "invalid_json", "The body must be a JSON object.")
    return values


def read_body(
    content: bytes, model: type[SpeechBody], max_characters: int, *, strict: bool = False
) -> tuple[SpeechBody, list[str]]:
    """Check a request against the schema and the longest text; return also the fields that have no effect.

    Clients send fields of newer or other servers; only ``strict`` refuses them.
    """
    sent = json_object(content)
    known = {name: value for name, value in sent.items() if name in model.model_fields}
    body = model.parse(sent if strict else known, source="the request")
    if len(body.input) > max_characters:
        message = f"The text has {len(body.input):,} characters; the limit is {max_characters:,}."
        raise RequestError(400, "text_too_long", message, param="input")
    if body.response_format == "opus" and body.sample_rate not in OPUS_RATES:
        message = f"opus has no sample rate of {body.sample_rate}; use one of {', '.join(map(str, OPUS_RATES))}."
        raise RequestError(400, "invalid_value", message, param="sample_rate")
    return body, sorted(sent.keys() - known.keys())


class VoiceFolder:
    """Maps names of voices to references; a name is never a path.

    Each audio file in the folder is a voice, and each subfolder of audio files. It is read at each request, so a new
    file is a voice at once. Without a folder, there are only the voices of the model.
    """

    def __init__(self, folder: Path | None) -> None:
        if folder is not None and not folder.is_dir():
            raise ConfigError(f"{folder} is not a folder.", hint="Give the voices folder with --voices.")
        self.folder = folder

    def references(self, model_voices: Sequence[str]) -> dict[str, str]:
        """Map each name to a reference; a file takes precedence over a voice of the model."""
        return {DEFAULT_VOICE: ""} | {name: name for name in model_voices} | named_voices(self.folder)

    def reference(self, name: str, model_voices: Sequence[str]) -> str:
        """Return the reference of a voice."""
        references = self.references(model_voices)
        if name not in references and name in OPENAI_VOICES:
            name = DEFAULT_VOICE
        if name not in references:
            first = ", ".join(list(references)[:8])
            message = f"Unknown voice {name[:60]!r}. Voices: {first}{', …' if len(references) > 8 else ''}."
            raise RequestError(400, "unknown_voice", message, param="voice")
        return references[name]
