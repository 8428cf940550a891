"""What the parts of the tab share: the page, the model, the long works, the form, and what every handler is given."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from gradio.blocks import Block
from gradio.components import Component

from utils.config import SpeechConfig
from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.runs.background_jobs import Errands
from utils.runs.tasks import Work
from utils.speech.models import ListedModel
from utils.ui.form import build_form, read_form
from utils.ui.page import PageContext
from utils.ui.tabs.inference.model_session import Studio
from utils.ui.views import error_box

logger = logging.getLogger(__name__)

HERE = ("speed", "temperature", "seed", "candidates", "tries")  # of the settings in sight
MODEL = ("device", "precision")


@dataclass(frozen=True)
class Room:
    """What the parts of the tab share.

    Attributes:
        page: The frame around it.
        studio: The model in memory.
        errands: Long works.
        form: The widget of each setting of speech, by its name.
    """

    page: PageContext
    studio: Studio
    errands: Errands
    form: dict[str, Component] = field(default_factory=dict)

    def open(self, project: str) -> Project:
        """Return the open project."""
        return self.page.open(project)

    def fields(self, *names: str) -> dict[str, Component]:
        """Lay out the widgets of some settings."""
        made = build_form(SpeechConfig, only=names)
        self.form.update(made)
        return made

    @property
    def rest(self) -> tuple[str, ...]:
        """Return the settings that no part has laid out yet."""
        return tuple(name for name in SpeechConfig.model_fields if name not in self.form)

    @property
    def given(self) -> dict[str, Block]:
        """Return what a handler that speaks is given by name."""
        return {"project": self.page.project, "page_language": self.page.language, **self.form}


@dataclass(frozen=True)
class Sight:
    """What the clock looks at for one visitor.

    Attributes:
        name: The open project.
        place: Its folder.
        models: What can be opened.
        language: What the page speaks to him.
    """

    name: str
    place: Project
    models: list[ListedModel]
    language: str


def settings(values: dict[str, object]) -> SpeechConfig:
    """Read the form."""
    return read_form({name: values[name] for name in values if name in SpeechConfig.model_fields}, SpeechConfig)


def news(room: Room, visitor: str, kind: str, work: Work[Any]) -> Iterator[Any]:
    """Do a work for a visitor who waits for it; his next one of this kind takes its place."""
    room.studio.begin(f"{visitor} {kind}", work)
    yield from work.news()


def fault(error: BaseException, language: str) -> str:
    """Show an error in its place: one sentence with its cure, or an honest one about a fault of ours."""
    if not isinstance(error, AmharicTtsError):
        logger.error("A handler of the page failed.", exc_info=error)
    return error_box(error, language)
