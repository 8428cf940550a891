"""Settings of speech and of the speech server."""

from typing import Literal

from utils.config.base import Config, Device, Language, Text, setting

DEFAULT_VOICE = "default"  # the voice that a model was trained on, like a blank name


class SpeakerConfig(Config):
    """Which model to use, and where."""

    model: Text = setting(
        "", "Model", "Finished model, checkpoint, run, base model or Coqui model folder; blank = latest."
    )
    device: Device = setting("auto", "Device", "Device for the model.")
    precision: Literal["auto", "fp32", "bf16", "fp16", "int8"] = setting(
        "auto", "Precision", "Numeric precision; auto = the fastest one measured on this machine."
    )


class SpeechConfig(SpeakerConfig):
    """How to speak a text."""

    reference: Text = setting(
        "", "Voice", "Audio files of one speaker, separated by |, or a voice of the model; blank = its own voice."
    )
    language: Language = setting("am", "Language", "Language of the text.")
    temperature: float = setting(0.75, "Temperature", "Higher values sound livelier and are less reliable.", gt=0, le=2)
    top_k: int = setting(50, "Top k", "Number of audio codes considered at each step.", ge=1, le=1026)
    top_p: float = setting(0.85, "Top p", "Probability mass considered at each step.", gt=0, le=1)
    repetition_penalty: float = setting(10.0, "Repetition penalty", "Higher values avoid repetitions.", ge=1, le=50)
    speed: float = setting(1.0, "Speed", "Speech rate; the pitch stays the same.", ge=0.25, le=4)
    seed: int = setting(0, "Seed", "The same seed, text and voice give the same audio.", ge=0, lt=2**32)
    tries: int = setting(3, "Attempts per sentence", "Limit if checks fail. Not when streaming.", ge=1, le=10)
    candidates: int = setting(1, "Versions per sentence", "The best of these is used. Not when streaming.", ge=1, le=16)
    batch_size: int = setting(8, "Sentences at a time", "Sentences that are generated together.", ge=1, le=64)
    sentence_pause: float = setting(0.35, "Pause after a sentence (s)", "Silence between two sentences.", ge=0, le=5)
    paragraph_pause: float = setting(0.8, "Pause after a paragraph (s)", "Silence between two paragraphs.", ge=0, le=10)
    trim: bool = setting(True, "Trim", "Remove silence and noise at both ends of each sentence. Not when streaming.")
    loudness: float = setting(
        -16.0, "Loudness (LUFS)", "Loudness of the speech, with peaks below -1 dB; 0 = as generated.", ge=-40, le=0
    )
    first_codes: int = setting(12, "First chunk (codes)", "Audio codes before streaming starts.", ge=2, le=200)
    chunk_codes: int = setting(24, "Chunk (codes)", "Audio codes of the largest chunk when streaming.", ge=2, le=200)


class ServeConfig(SpeakerConfig):
    """How to serve speech to other programs."""

    host: Text = setting("127.0.0.1", "Address", "Address to listen on; 0.0.0.0 = all networks.")
    port: int = setting(8020, "Port", "Port to listen on; 0 = any free port.", ge=0, le=65_535)
    api_key_file: Text = setting(
        "",
        "API key file",
        "File with the key that clients must send; blank = the environment variable AMHARIC_TTS_API_KEY. "
        "Required when other computers can reach the address.",
    )
    origins: Text = setting(
        "", "Web pages", "Web pages that may call the server, such as http://localhost:8000, separated by |."
    )
    trusted_proxies: Text = setting(
        "",
        "Trusted proxies",
        "Addresses or networks of reverse proxies whose X-Forwarded headers are believed, separated by |.",
    )
    wyoming: Text = setting(
        "", "Wyoming address", "Address for Home Assistant, such as tcp://127.0.0.1:10200; it has no password."
    )
    name: Text = setting("amharic-xtts", "Model name", "Name of the model in API responses.", min_length=1)
    voices: Text = setting(
        "", "Voices folder", "Each audio file, and each folder of audio files, becomes a voice with its name."
    )
    speech: Text = setting("", "Voice settings", "YAML file with the default speech settings of requests.")
    longest_text: int = setting(
        4096, "Maximum text length (characters)", "Longer texts are refused.", ge=1, le=1_000_000
    )
    active: int = setting(8, "Requests at a time", "Requests that are spoken together; further ones wait.", ge=1, le=64)
    waiting: int = setting(16, "Queued requests", "Maximum number of waiting requests.", ge=0, le=1000)
    clients: int = setting(
        64, "Open requests", "Maximum number of requests being answered, including slow readers.", ge=1, le=1000
    )
    seconds: float = setting(600.0, "Request timeout (s)", "Longer requests are cancelled.", gt=0, le=86_400)
