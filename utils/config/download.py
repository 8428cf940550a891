"""The settings of fetching a base model."""

from pydantic import Field

from utils.config.base import Config, Text
from utils.config.train import Version


class DownloadConfig(Config):
    """Which base model is fetched."""

    version: Version = Field(
        "v2.0.2",
        title="Base version",
        description="Version of XTTS v2; tiny comes with the program, tiny-random is for tests.",
    )
    models: Text = Field(
        "", title="Folder of the models", description="Where it is kept; empty: where trainings look for it."
    )
