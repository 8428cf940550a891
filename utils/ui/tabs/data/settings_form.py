"""The settings of a preparation: every field once, in groups, filled from the newest run of the project."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import gradio as gr
from gradio.components import Component

from utils.config import DatasetConfig
from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.ui.form import build_form, info
from utils.ui.i18n import field_title, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext
from utils.ui.tabs.data import fields, start
from utils.workspace import uploads


@dataclass(frozen=True)
class DataForm:
    """The widgets of the form.

    Attributes:
        page: The frame around it.
        widgets: By the name of the field, in the order in which they stand.
        seen: The places as this visitor was shown them last.
    """

    page: PageContext
    widgets: dict[str, Component] = field(default_factory=dict)
    seen: gr.State = field(default_factory=lambda: gr.State(None))

    @property
    def places(self) -> list[Any]:
        """Return what ``listed`` fills."""
        return [self.widgets["inputs"], self.seen]

    @property
    def settings(self) -> list[Any]:
        """Return the widgets of all settings, in the order of ``fields.SHOWN``."""
        return [self.widgets[name] for name in fields.SHOWN]

    @property
    def given(self) -> dict[str, Any]:
        """Return what a handler of the whole form reads."""
        return {"project": self.page.project, "page_language": self.page.language, **self.widgets}

    def listed(self, project: Project) -> list[str]:
        """Show the places that Step 1 reads, and remember that they were shown."""
        return [uploads.join_inputs(uploads.read_inputs(project))] * len(self.places)

    def renewed(self, project: str) -> list[Any]:
        """Show the places of the project that is open."""
        try:
            return list(self.listed(self.page.open(project)))
        except AmharicTtsError:  # a name that is none yet; the header says so
            return [gr.skip()] * len(self.places)

    def lay(self, names: Sequence[str]) -> None:
        """Lay out the widgets of some fields, side by side where there is room."""
        with gr.Row(elem_classes="fields"):
            for name in names:
                self.widgets[name] = whisper_sizes() if name == "whisper_model" else _widget(name)


def _widget(name: str) -> Component:
    return build_form(DatasetConfig, only=[name])[name]


def whisper_sizes() -> gr.Dropdown:
    """Offer the sizes of Whisper; a folder can be typed."""
    known = DatasetConfig.model_fields["whisper_model"]
    return gr.Dropdown(
        list(fields.WHISPER_SIZES),
        value=known.default,
        label=field_title(DatasetConfig, "whisper_model"),
        info=info(DatasetConfig, "whisper_model"),
        allow_custom_value=True,
        interactive=True,
    )


def build_settings(form: DataForm) -> None:
    """Lay out all settings and fill them with those that the project was prepared with last."""
    form.lay(fields.BASIC)
    for title, names in fields.GROUPS.items():
        with gr.Accordion(t(title), open=False):
            form.lay(names)
    page = form.page

    def restore(project: str) -> list[Any]:
        try:
            return fields.filled(start.last_settings(page.open(project)))
        except AmharicTtsError:  # a name that is none yet; the header says so
            return [gr.skip()] * len(fields.SHOWN)

    gr.on([page.blocks.load, page.project.change], restore, page.project, form.settings, **RAW_INPUTS, **PRIVATE_EVENT)
