"""The settings of the page, saved beside the projects."""

from pathlib import Path
from typing import Literal

from utils.config import Config
from utils.config.base import setting
from utils.core.errors import ConfigError
from utils.core.facts import FileIgnored, log_fact
from utils.core.storage import make_folder, write_atomically
from utils.studio.paths import SETTINGS
from utils.studio.projects import TRASH_DAYS


class PageSettings(Config):
    """Settings of the page."""

    colours: Literal["system", "light", "dark"] = setting(
        "system", "Theme", "Light, dark, or the setting of the visitor's system."
    )
    language: Literal["en", "am"] = setting("en", "Default language", "Visitors who chose a language keep it.")
    kept_days: int = setting(
        TRASH_DAYS,
        "Keep deleted projects (days)",
        "Older ones are removed when the page starts and after each deletion.",
        ge=0,
        le=365,
    )


def settings_path(output: Path) -> Path:
    return output / SETTINGS.name / "page.yaml"


def read(output: Path) -> PageSettings:
    """Read the settings; the defaults when the file is missing or invalid."""
    path = settings_path(output)
    try:
        return PageSettings.load_own(path) if path.is_file() else PageSettings()
    except ConfigError as error:  # of another version, or edited by hand; the page must open all the same
        log_fact(FileIgnored(path, str(error)))
        return PageSettings()


def write(settings: PageSettings, output: Path) -> None:
    path = settings_path(output)
    make_folder(path.parent)
    write_atomically(path, settings.to_signed_yaml())
