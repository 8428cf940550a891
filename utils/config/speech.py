"""Settings of speech and of the speech server."""

from typing import Literal

from pydantic import Field

from utils.config.base import Config, Language, Text

DEFAULT_VOICE = "default"  # the voice that a model was trained on, like a blank name


class SpeakerConfig(Config):
    """Which model to use, and where."""

    model: Text = Field(
        "",
        title="Model",
        description="Finished model, checkpoint, run, base version or Coqui model folder; blank = latest.",
    )
    device: Literal["auto", "cuda", "cpu"] = Field("auto", title="Device", description="Device for the model.")
    precision: Literal["auto", "fp32", "bf16", "fp16", "int8"] = Field(
        "auto", title="Precision", description="Numeric precision; auto = the fastest one measured on this machine."
    )


class SpeechConfig(SpeakerConfig):
    """How to speak a text."""

    reference: Text = Field(
        "",
        title="Voice",
        description="Audio files of one speaker, separated by |, or a voice of the model; blank = its own voice.",
    )
    language: Language = Field("am", title="Language", description="Language of the text.")
    temperature: float = Field(
        0.75, gt=0, le=2, title="Temperature", description="Higher values sound livelier and are less reliable."
    )
    top_k: int = Field(50, ge=1, le=1026, title="Top k", description="Number of audio codes considered at each step.")
    top_p: float = Field(0.85, gt=0, le=1, title="Top p", description="Probability mass considered at each step.")
    repetition_penalty: float = Field(
        10.0, ge=1, le=50, title="Repetition penalty", description="Higher values avoid repeated audio codes."
    )
    beams: int = Field(
        1, ge=1, le=16, title="Beams", description="Beam search width; 1 = sampling with the temperature."
    )
    length_penalty: float = Field(
        1.0, ge=-2, le=4, title="Length penalty", description="With beam search, higher values prefer longer speech."
    )
    speed: float = Field(1.0, ge=0.5, le=2.0, title="Speed", description="Speech rate; the pitch stays the same.")
    seed: int = Field(0, ge=0, lt=2**32, title="Seed", description="The same seed, text and voice give the same audio.")
    tries: int = Field(
        3,
        ge=1,
        le=10,
        title="Attempts per sentence",
        description="Maximum number of times a sentence that fails the automatic checks is generated.",
    )
    candidates: int = Field(
        1, ge=1, le=16, title="Versions per sentence", description="The best of these versions is used."
    )
    batch_size: int = Field(
        8, ge=1, le=64, title="Sentences at a time", description="Sentences of a long text that are generated together."
    )
    sentence_pause: float = Field(
        0.35, ge=0, le=5, title="Pause after a sentence (s)", description="Silence between two sentences."
    )
    paragraph_pause: float = Field(
        0.8, ge=0, le=10, title="Pause after a paragraph (s)", description="Silence between two paragraphs."
    )
    trim: bool = Field(True, title="Trim", description="Remove silence and noise at both ends of each sentence.")
    first_codes: int = Field(
        12, ge=2, le=200, title="First chunk (codes)", description="Audio codes generated before streaming starts."
    )
    chunk_codes: int = Field(
        24, ge=2, le=200, title="Chunk (codes)", description="Audio codes per chunk when streaming."
    )


class ServeConfig(SpeakerConfig):
    """How to serve speech to other programs."""

    host: Text = Field("127.0.0.1", title="Address", description="Address to listen on; 0.0.0.0 = all networks.")
    port: int = Field(8020, ge=0, le=65_535, title="Port", description="Port to listen on; 0 = any free port.")
    api_key_file: Text = Field(
        "",
        title="API key file",
        description="File with the key that clients must send; blank = the variable AMHARIC_TTS_API_KEY. "
        "Required when other computers can reach the address.",
    )
    name: Text = Field(
        "amharic-xtts", min_length=1, title="Model name", description="Name of the model in API responses."
    )
    voices: Text = Field(
        "",
        title="Voices folder",
        description="Each audio file, and each folder of audio files, becomes a voice with its name.",
    )
    speech: Text = Field(
        "", title="Voice settings", description="YAML file with the default speech settings of requests."
    )
    longest_text: int = Field(
        4096, ge=1, le=1_000_000, title="Maximum text length (characters)", description="Longer texts are refused."
    )
    waiting: int = Field(
        16,
        ge=0,
        le=1000,
        title="Queued requests",
        description="Maximum number of waiting requests; one text is spoken at a time.",
    )
    clients: int = Field(
        64,
        ge=1,
        le=1000,
        title="Open requests",
        description="Maximum number of requests being answered, slow readers included.",
    )
    seconds: float = Field(
        600.0, gt=0, le=86_400, title="Request timeout (s)", description="Longer requests are cancelled."
    )
