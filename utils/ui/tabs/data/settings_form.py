"""The settings of a preparation: every field once, in groups, filled from the newest run of the project."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gradio as gr
from gradio.components import Component

from utils import runs
from utils.config import SEPARATOR, DatasetConfig
from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.ui.form import build_form, editable_dropdown, read_form
from utils.ui.i18n import heading
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, Advanced, PageContext
from utils.workspace import uploads

VERB = "prepare"
BASIC = ("language",)
GROUPS = {
    "data.transcription": "speaker transcribe whisper_model second_model device",
    "data.segmentation": "segmenter vad_threshold energy_threshold_db min_seconds max_seconds padding_seconds "
    "min_pause_seconds min_speech_seconds merge_pause_seconds",
    "data.quality_filters": "min_speech_ratio min_snr_db max_clipping min_chars_per_second max_chars_per_second "
    "min_confidence max_second_cer",
    "data.loudness_and_evaluation": "normalise_loudness eval_share split_by workers engine",
}  # names of fields by the title of their group
FIELDS = (*BASIC, *" ".join(GROUPS.values()).split())  # all but the inputs
WHISPER_SIZES = ["tiny", "base", "small", "medium", "large-v3", "large-v3-turbo"]


@dataclass(frozen=True)
class DataForm:
    """The widgets of the form."""

    page: PageContext
    widgets: dict[str, Component] = field(default_factory=dict)  # by field name, in the order on the page
    shown_inputs: gr.State = field(default_factory=lambda: gr.State(None))  # as this visitor last saw them

    @property
    def event_inputs(self) -> dict[str, Any]:
        """The inputs of a handler that needs the whole form."""
        return {"project": self.page.project, "page_language": self.page.language, **self.widgets}

    @property
    def input_widgets(self) -> list[Any]:
        """The outputs of ``show_inputs``."""
        return [self.widgets["inputs"], self.shown_inputs]

    def show_inputs(self, project: Project) -> list[str]:
        """Show the inputs of a project, and remember what was shown."""
        return [uploads.join_inputs(uploads.read_inputs(project))] * 2

    def inputs_update(self, project: Project) -> dict[Any, str]:
        return dict(zip(self.input_widgets, self.show_inputs(project), strict=True))

    def lay_out(self, names: Sequence[str]) -> None:
        with gr.Row(elem_classes="fields"):
            for name in names:
                if name == "whisper_model":  # a folder can be typed
                    default = DatasetConfig.model_fields[name].default
                    self.widgets[name] = editable_dropdown(DatasetConfig, name, WHISPER_SIZES, default)
                else:
                    self.widgets.update(build_form(DatasetConfig, only=[name]))


def build_settings(form: DataForm, advanced: Advanced) -> None:
    """Lay out the settings that are not basic, and fill all with those of the newest preparation."""
    with advanced.section():
        for title, names in GROUPS.items():
            gr.Markdown(heading(title, level=3))
            form.lay_out(names.split())
    page = form.page

    def restore(project: str) -> list[Any]:
        try:
            config = last_settings(page.open(project))
        except AmharicTtsError:  # not a valid name yet; the header says so
            return [gr.skip()] * len(FIELDS)
        return [getattr(config, name) for name in FIELDS]

    widgets = [form.widgets[name] for name in FIELDS]
    gr.on([page.blocks.load, page.project.change], restore, page.project, widgets, **RAW_INPUTS, **PRIVATE_EVENT)


def last_settings(project: Project) -> DatasetConfig:
    """Return the settings of the newest preparation; the defaults without one, or if it is damaged."""
    run = next(iter(runs.list_runs(project, VERB)), None)
    try:
        return DatasetConfig.load(run.config) if run else DatasetConfig()
    except AmharicTtsError:  # of an older version, or damaged
        return DatasetConfig()


def read_settings(values: Mapping[str, object], project: Project) -> DatasetConfig:
    """Return the settings of a run in this project; the error names every invalid field."""
    names = uploads.split_inputs(str(values.get("inputs") or ""))
    inputs = SEPARATOR.join(uploads.absolute_input(project, name) for name in names)
    return read_form({**values, "inputs": inputs}, DatasetConfig)
