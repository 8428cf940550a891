"""The settings of the page, saved beside the projects."""

import logging
from pathlib import Path
from typing import Literal

from pydantic import Field

from utils.config import Config
from utils.core.errors import ConfigError
from utils.core.facts import FileIgnored
from utils.core.storage import make_folder, write_atomically
from utils.studio.paths import SETTINGS
from utils.studio.projects import TRASH_DAYS

logger = logging.getLogger(__name__)


class PageSettings(Config):
    """Settings of the page."""

    colours: Literal["system", "light", "dark"] = Field(
        "system", title="Theme", description="Light, dark, or the setting of the visitor's system."
    )
    language: Literal["en", "am"] = Field(
        "en", title="Default language", description="Visitors who chose a language keep it."
    )
    kept_days: int = Field(
        TRASH_DAYS,
        ge=0,
        le=365,
        title="Keep deleted projects (days)",
        description="Older ones are removed when the page starts and after each deletion.",
    )


def settings_path(output: Path) -> Path:
    return output / SETTINGS.name / "page.yaml"


def read(output: Path) -> PageSettings:
    """Read the settings; the defaults when the file is missing or invalid."""
    try:
        return PageSettings.load_own(settings_path(output)) if settings_path(output).is_file() else PageSettings()
    except ConfigError as error:  # of another version, or edited by hand; the page must open all the same
        logger.warning("%s", FileIgnored(settings_path(output), str(error)))
        return PageSettings()


def write(settings: PageSettings, output: Path) -> None:
    make_folder(settings_path(output).parent)
    write_atomically(settings_path(output), settings.to_signed_yaml())
