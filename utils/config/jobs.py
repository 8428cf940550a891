"""Settings of the smaller jobs: encode features, download a model, test runs."""

from typing import Literal

from pydantic import Field

from utils.config.base import Config, Text
from utils.config.train import Version


class DownloadConfig(Config):
    """Which base model to download."""

    version: Version = Field(
        "v2.0.2",
        title="Base version",
        description="XTTS version to download; tiny is the small built-in voice, tiny-random is for tests.",
    )
    models: Text = Field("", title="Models folder", description="Where to save the model; blank = the default folder.")


class FeaturesConfig(Config):
    """How to encode clips for training."""

    model: Text = Field("", title="Model folder", description="Folder with dvae.pth, mel_stats.pth and vocab.json.")
    device: Literal["auto", "cuda", "cpu"] = Field("auto", title="Device", description="Device for the DVAE.")
    thorough: bool = Field(
        False, title="Verify all", description="Read all stored features again and recompute damaged ones."
    )


class RehearsalConfig(Config):
    """How long a test run takes."""

    seconds: float = Field(20.0, ge=0.1, le=86_400, title="Seconds", description="Length of the test run.")
    ticks_per_second: float = Field(
        2.0, gt=0, le=100, title="Ticks per second", description="Events written per second."
    )
