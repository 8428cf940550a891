"""The settings of fetching a base model."""

from typing import Literal

from pydantic import Field

from utils.config.base import Config, Text


class DownloadConfig(Config):
    """Which base model is fetched."""

    version: Literal["v2.0.0", "v2.0.1", "v2.0.2", "v2.0.3", "main", "tiny"] = Field(
        "v2.0.2", title="Base version", description="Version of XTTS v2; tiny: a small untrained one, made here."
    )
    models: Text = Field(
        "", title="Folder of the models", description="Where it is kept; empty: where trainings look for it."
    )
