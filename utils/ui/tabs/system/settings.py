"""The settings of the page itself, kept beside the projects."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from utils.config import Config
from utils.core.errors import ConfigError
from utils.core.paths import SETTINGS
from utils.core.storage import make_folder, write_atomically
from utils.workspace.projects import TRASH_DAYS

FOLDER, FILE = SETTINGS.name, "page.yaml"


class PageSettings(Config):
    """How the page looks and what it keeps."""

    colours: Literal["system", "light", "dark"] = Field(
        "system", title="Colours", description="Light, dark, or as the computer of the visitor has it."
    )
    language: Literal["en", "am"] = Field(
        "en", title="Language for new visitors", description="Whoever has chosen a language keeps it."
    )
    kept_days: int = Field(
        TRASH_DAYS,
        ge=0,
        le=365,
        title="Days that deleted projects are kept",
        description="Older ones are removed when the page starts and after each deletion.",
    )


def place(output: Path) -> Path:
    """Return the file of the settings."""
    return output / FOLDER / FILE


def read(output: Path) -> PageSettings:
    """Read the settings; without a file, or with a spoiled one, the defaults."""
    try:
        return PageSettings.load(place(output)) if place(output).is_file() else PageSettings()
    except ConfigError:  # of another version, or edited by hand: the page has to open all the same
        return PageSettings()


def write(settings: PageSettings, output: Path) -> None:
    """Keep the settings."""
    make_folder(place(output).parent)
    write_atomically(place(output), settings.to_yaml())
