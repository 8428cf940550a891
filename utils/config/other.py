"""The settings of the smaller jobs: speaking, serving, encoding clips, rehearsing a run."""

from typing import Literal

from pydantic import Field

from utils.config.base import Config, Language, Text

DEFAULT_VOICE = "default"  # names the voice that a model was trained for, as an empty name does


class SpeakerConfig(Config):
    """Which model speaks, and on what."""

    model: Text = Field(
        "",
        title="Model",
        description="A finished model, a checkpoint, a run, a base version or a folder of coqui; empty: the newest.",
    )
    device: Literal["auto", "cuda", "cpu"] = Field("auto", title="Device", description="Where the model computes.")
    precision: Literal["auto", "fp32", "bf16", "fp16", "int8"] = Field(
        "auto", title="Precision", description="Numbers the model computes with; auto: what was fastest here."
    )


class SpeechConfig(SpeakerConfig):
    """How a text is spoken."""

    reference: Text = Field(
        "",
        title="Voice",
        description="Sound files of one speaker, divided by |, or the name of a voice in the model; empty: its own.",
    )
    language: Language = Field("am", title="Language", description="Language of the text.")
    temperature: float = Field(0.75, gt=0, le=2, title="Temperature", description="Higher: livelier and less reliable.")
    top_k: int = Field(50, ge=1, le=1026, title="Top k", description="Codes considered at each step.")
    top_p: float = Field(0.85, gt=0, le=1, title="Top p", description="Probability mass considered at each step.")
    repetition_penalty: float = Field(
        10.0, ge=1, le=50, title="Repetition penalty", description="Weight against repeats."
    )
    beams: int = Field(
        1, ge=1, le=16, title="Beams", description="Readings followed at once; 1: drawn at random by the temperature."
    )
    length_penalty: float = Field(
        1.0, ge=-2, le=4, title="Length penalty", description="With beams: higher prefers longer speech."
    )
    speed: float = Field(1.0, ge=0.5, le=2.0, title="Speed", description="Rate of speech without a change of pitch.")
    seed: int = Field(0, ge=0, lt=2**32, title="Seed", description="Same seed, same text and same voice: same audio.")
    tries: int = Field(
        3, ge=1, le=10, title="Tries", description="How often a sentence is spoken before a doubtful one is taken."
    )
    candidates: int = Field(
        1, ge=1, le=16, title="Candidates", description="Readings of each sentence, of which the best is taken."
    )
    batch_size: int = Field(
        8, ge=1, le=64, title="Sentences at once", description="Sentences of a long text that are spoken together."
    )
    sentence_pause: float = Field(
        0.35, ge=0, le=5, title="Pause after a sentence (s)", description="Silence between two sentences."
    )
    paragraph_pause: float = Field(
        0.8, ge=0, le=10, title="Pause after a paragraph (s)", description="Silence between two paragraphs."
    )
    trim: bool = Field(True, title="Trim", description="Cut silence and noise off both ends of each sentence.")
    first_codes: int = Field(
        12, ge=2, le=200, title="First chunk (codes)", description="When streaming, codes before the first sound."
    )
    chunk_codes: int = Field(
        24, ge=2, le=200, title="Chunk (codes)", description="When streaming, codes between two sounds."
    )


class ServeConfig(SpeakerConfig):
    """How speech is served to other programs."""

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


class FeaturesConfig(Config):
    """How clips are encoded for training."""

    model: Text = Field(
        "", title="Model folder", description="Holds dvae.pth, mel_stats.pth and vocab.json, as published."
    )
    device: Literal["auto", "cuda", "cpu"] = Field("auto", title="Device", description="Where the DVAE runs.")
    thorough: bool = Field(
        False, title="Check all", description="Read again every byte that is stored; what is damaged is made anew."
    )


class RehearsalConfig(Config):
    """How long a rehearsal counts."""

    seconds: float = Field(20.0, ge=0.1, le=86_400, title="Seconds", description="How long the rehearsal counts.")
    ticks_per_second: float = Field(
        2.0, gt=0, le=100, title="Ticks per second", description="Events written each second."
    )
