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
from utils.ui.tabs.data import start
from utils.workspace import uploads

BASIC = ("language", "speaker", "whisper_model")
GROUPS = {
    "data.transcription": ("transcribe", "second_model", "device"),
    "data.segmentation": (
        "segmenter",
        "vad_threshold",
        "energy_threshold_db",
        "min_seconds",
        "max_seconds",
        "padding_seconds",
        "min_pause_seconds",
        "min_speech_seconds",
        "merge_pause_seconds",
    ),
    "data.quality_filters": (
        "min_speech_ratio",
        "min_snr_db",
        "max_clipping",
        "min_chars_per_second",
        "max_chars_per_second",
        "min_confidence",
        "max_second_cer",
    ),
    "data.loudness_and_evaluation": ("normalise_loudness", "eval_share", "split_by", "workers", "engine"),
}
FIELDS = (*BASIC, *(name for names in GROUPS.values() for name in names))  # all but the inputs
WHISPER_SIZES = ("tiny", "base", "small", "medium", "large-v3", "large-v3-turbo")


@dataclass(frozen=True)
class DataForm:
    """The widgets of the form.

    Attributes:
        page: The page.
        widgets: By field name, in the order on the page.
        shown_inputs: The inputs as this visitor last saw them.
    """

    page: PageContext
    widgets: dict[str, Component] = field(default_factory=dict)
    shown_inputs: gr.State = field(default_factory=lambda: gr.State(None))

    @property
    def input_widgets(self) -> list[Any]:
        """Return the outputs of ``show_inputs``."""
        return [self.widgets["inputs"], self.shown_inputs]

    @property
    def given(self) -> dict[str, Any]:
        """Return the inputs of a handler that needs the whole form."""
        return {"project": self.page.project, "page_language": self.page.language, **self.widgets}

    def show_inputs(self, project: Project) -> list[str]:
        """Show the inputs of a project, and remember what was shown."""
        return [uploads.join_inputs(uploads.read_inputs(project))] * len(self.input_widgets)

    def reload_inputs(self, project: str) -> list[Any]:
        """Show the inputs of the open project."""
        try:
            return list(self.show_inputs(self.page.open(project)))
        except AmharicTtsError:  # not a valid name yet; the header says so
            return [gr.skip()] * len(self.input_widgets)

    def lay_out(self, names: Sequence[str]) -> None:
        """Add the widgets of some fields, side by side where there is space."""
        with gr.Row(elem_classes="fields"):
            for name in names:
                is_size = name == "whisper_model"
                self.widgets[name] = _whisper_model() if is_size else build_form(DatasetConfig, only=[name])[name]


def _whisper_model() -> gr.Dropdown:
    """Offer the sizes of Whisper; a folder can be typed."""
    return gr.Dropdown(
        list(WHISPER_SIZES),
        value=DatasetConfig.model_fields["whisper_model"].default,
        label=field_title(DatasetConfig, "whisper_model"),
        info=info(DatasetConfig, "whisper_model"),
        allow_custom_value=True,
        interactive=True,
    )


def build_settings(form: DataForm) -> None:
    """Lay out all settings and fill them with those of the newest preparation."""
    form.lay_out(BASIC)
    for title, names in GROUPS.items():
        with gr.Accordion(t(title), open=False):
            form.lay_out(names)
    page = form.page

    def restore(project: str) -> list[Any]:
        try:
            config = start.last_settings(page.open(project))
        except AmharicTtsError:  # not a valid name yet; the header says so
            return [gr.skip()] * len(FIELDS)
        return [getattr(config, name) for name in FIELDS]

    widgets = [form.widgets[name] for name in FIELDS]
    gr.on([page.blocks.load, page.project.change], restore, page.project, widgets, **RAW_INPUTS, **PRIVATE_EVENT)
