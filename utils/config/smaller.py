"""The settings of the smaller jobs: speaking, encoding clips, rehearsing a run."""

from typing import Literal

from pydantic import Field

from utils.config.base import Config, Language, Text


class SpeechConfig(Config):
    """How a text is spoken."""

    language: Language = Field("am", title="Language", description="Language of the text.")
    temperature: float = Field(0.75, gt=0, le=2, title="Temperature", description="Higher: livelier and less reliable.")
    top_k: int = Field(50, ge=1, le=1026, title="Top k", description="Codes considered at each step.")
    top_p: float = Field(0.85, gt=0, le=1, title="Top p", description="Probability mass considered at each step.")
    repetition_penalty: float = Field(
        10.0, ge=1, le=50, title="Repetition penalty", description="Weight against repeats."
    )
    speed: float = Field(1.0, ge=0.5, le=2.0, title="Speed", description="Rate of speech without a change of pitch.")
    seed: int = Field(0, ge=0, lt=2**32, title="Seed", description="Same seed, same text and same voice: same audio.")


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
