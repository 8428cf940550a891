"""What the server may be told before it starts."""

from typing import Literal

from pydantic import Field

from utils.config.base import Config, Text


class ServeConfig(Config):
    """How speech is served to other programs."""

    model: Text = Field(
        "",
        title="Model",
        description="A finished model, a checkpoint, a run, a base version or a folder of coqui; empty: the newest.",
    )
    host: Text = Field("127.0.0.1", title="Address", description="Where to listen; 0.0.0.0: on every network.")
    port: int = Field(8020, ge=0, le=65_535, title="Port", description="Where to listen; 0: any free one.")
    api_key_file: Text = Field(
        "",
        title="File with the API key",
        description="Holds the key that callers send; empty: the variable AMHARIC_TTS_API_KEY. "
        "Needed when other computers can reach the address.",
    )
    name: Text = Field("amharic-xtts", min_length=1, title="Name", description="What the model is called in answers.")
    voices: Text = Field(
        "",
        title="Folder of voices",
        description="Each sound file in it, and each folder of sound files, is a voice by its name.",
    )
    speech: Text = Field(
        "", title="Speech settings", description="YAML file of speech settings that requests begin with."
    )
    longest_text: int = Field(
        4096, ge=1, le=1_000_000, title="Longest text (characters)", description="What is longer is refused."
    )
    waiting: int = Field(
        16,
        ge=0,
        le=1000,
        title="Waiting requests",
        description="One text is spoken at a time; more than these wait not.",
    )
    clients: int = Field(
        64, ge=1, le=1000, title="Open requests", description="Requests that are answered, slow readers included."
    )
    seconds: float = Field(
        600.0, gt=0, le=86_400, title="Time for a request (s)", description="After this an answer is broken off."
    )
    device: Literal["auto", "cuda", "cpu"] = Field("auto", title="Device", description="Where the model computes.")
    precision: Literal["auto", "fp32", "bf16", "fp16", "int8"] = Field(
        "auto", title="Precision", description="Numbers the model computes with; auto: what was fastest here."
    )
