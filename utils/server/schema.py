"""What a caller may ask for: the fields of OpenAI's API, and the settings of speech under the names they have here."""

import json
from typing import Any, Literal, cast

from pydantic import Field, create_model, field_validator

from utils.config import DEFAULT_VOICE, SpeechConfig
from utils.config.base import Config
from utils.server.errors import RefusedError

# Not among them: what multiplies memory and work, and where the model computes.
SETTINGS = (
    "language temperature top_k top_p repetition_penalty speed seed tries sentence_pause paragraph_pause trim "
    "first_codes chunk_codes"
).split()


class Asked(Config):
    """A text to be spoken."""

    input: str = Field(min_length=1, title="Text", description="What to say.")
    model: str = Field("", title="Model", description="The model's name; it may be left out: there is one.")
    voice: str = Field(DEFAULT_VOICE, title="Voice", description="A name from the list of voices.")
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] = Field(
        "mp3", title="Format", description="pcm: 24 000 numbers of 16 bits a second, little end first, no head."
    )
    stream_format: Literal["audio", "sse"] = Field(
        "audio", title="Form", description="sse: server-sent events with the sound in base64."
    )
    stream: bool = Field(
        True,
        title="At once",
        description="Send sound while the text is being spoken; false: all at the end, with doubtful sentences "
        "spoken again and the length in the file's head.",
    )
    instructions: str = Field("", title="Instructions", description="This model follows none: leave it empty.")

    @field_validator("input")
    @classmethod
    def is_no_blank(cls, text: str) -> str:
        """Refuse a text of spaces."""
        if not text.strip():
            raise ValueError("is empty")
        return text

    @field_validator("instructions")
    @classmethod
    def is_empty(cls, text: str) -> str:
        """Refuse what would not be followed."""
        if text.strip():
            raise ValueError("cannot be followed: this model takes none")
        return text

    def speech(self, base: SpeechConfig, reference: str) -> SpeechConfig:
        """Return the settings of speech, with what was not asked for as the server has it."""
        asked = {name: getattr(self, name) for name in SETTINGS}
        return SpeechConfig.parse(base.model_dump() | asked | {"reference": reference}, source="the request")


def request_model(base: SpeechConfig) -> type[Asked]:
    """Make the form of a request: its settings are declared once, in SpeechConfig, and begin as the server has them."""
    fields: dict[str, Any] = {}
    for name in SETTINGS:
        field = SpeechConfig.model_fields[name]
        said = Field(getattr(base, name), title=field.title, description=field.description)
        fields[name] = (field.rebuild_annotation(), said)
    return cast("type[Asked]", create_model("SpeechRequest", __base__=Asked, __doc__=Asked.__doc__, **fields))


def read_request(content: bytes, form: type[Asked], longest: int) -> Asked:
    """Read the JSON of a request, or say all that is wrong with it."""
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, "invalid_json", "The request is no valid JSON.") from error
    if not isinstance(values, dict):
        raise RefusedError(400, "invalid_json", "The request has to be a JSON object with a text as its input.")
    asked = form.parse(values, source="the request")
    if len(asked.input) > longest:
        message = f"The text has {len(asked.input):,} characters; {longest:,} are the most."
        raise RefusedError(400, "text_too_long", message, param="input")
    return asked
