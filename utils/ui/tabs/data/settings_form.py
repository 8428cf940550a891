"""The settings of a preparation: every field once, in groups, filled from the newest run of the project."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import gradio as gr

from utils import runs
from utils.config import SEPARATOR, DatasetConfig
from utils.core.errors import AmharicTtsError
from utils.core.languages import AMHARIC
from utils.core.paths import Project
from utils.dataset import bulk_edits
from utils.dataset.recognisers.choice import RECOMMENDED
from utils.ui.form import build_form, editable_dropdown, read_form
from utils.ui.i18n import heading, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, show_errors
from utils.ui.tabs.data.review import refuse_while_busy
from utils.ui.views import error_box, message_box
from utils.workspace import uploads

VERB = "prepare"
BASIC = ("language",)
FILTERS = "data.quality_filters"
GROUPS = {
    "data.links": "corpus hours cookies proxy",
    "data.transcription": "speaker recogniser recogniser_model second_model check_texts device compute_type",
    "data.segmentation": "segmenter vad_threshold energy_threshold_db min_seconds max_seconds padding_seconds "
    "min_pause_seconds min_speech_seconds merge_pause_seconds",
    FILTERS: "min_speech_ratio min_snr_db max_clipping min_chars_per_second max_chars_per_second "
    "min_confidence max_second_cer",
    "data.loudness_and_evaluation": "normalise_loudness eval_share split_by workers engine",
}  # names of fields by the title of their group
FIELDS = (*BASIC, *" ".join(GROUPS.values()).split())  # all but the inputs, which are the sources of the project
LISTED = [(known.label, known.model) for known in RECOMMENDED[AMHARIC.code]]
SIZES = [(size, size) for size in ("tiny", "base", "medium", "large-v3-turbo")]
MODELS = [("", ""), *LISTED, *SIZES]  # the first is the recommended one


def lay_out(widgets: dict[str, Any], names: Sequence[str]) -> None:
    with gr.Row(elem_classes="fields"):
        for name in names:
            if name == "recogniser_model":  # a folder can be typed
                default = DatasetConfig.model_fields[name].default
                widgets[name] = editable_dropdown(DatasetConfig, name, MODELS, default)
            else:
                widgets.update(build_form(DatasetConfig, only=[name]))


def build_settings(page: PageContext, widgets: dict[str, Any]) -> None:
    """Lay out the settings that are not basic, and fill all with those of the newest preparation."""
    for title, names in GROUPS.items():
        gr.Markdown(heading(title, level=3))
        lay_out(widgets, names.split())
        if title == FILTERS:
            refilter_buttons = _build_refilter()

    def restore(project: str) -> list[Any]:
        try:
            config = last_settings(page.open(project))
        except AmharicTtsError:  # not a valid name yet; the header says so
            return [gr.skip()] * len(FIELDS)
        return [getattr(config, name) for name in FIELDS]

    filled = [widgets[name] for name in FIELDS]
    gr.on([page.blocks.load, page.project.change], restore, page.project, filled, **RAW_INPUTS, **PRIVATE_EVENT)
    _connect_refilter(page, widgets, *refilter_buttons)


def _build_refilter() -> tuple[gr.Button, gr.Button, gr.HTML]:
    """Lay out a preview of what these filters would change in the clips that are there, and the way to do it."""
    with gr.Row():
        preview = gr.Button(t("data.preview_filters"), elem_id="rules-ask", min_width=150)
        apply = gr.Button(t("data.rerun_filters"), elem_id="rules-apply", min_width=150)
    return preview, apply, gr.HTML(elem_id="bulk-said")


def _connect_refilter(
    page: PageContext, widgets: Mapping[str, Any], preview: gr.Button, apply: gr.Button, message: gr.HTML
) -> None:
    def refilter(*, apply: bool) -> Callable[..., str]:
        @show_errors
        def refiltered(project: str, page_language: str, **values: object) -> str:
            try:
                opened = page.open(project)
                if apply:
                    refuse_while_busy(opened)
                config = read_form(values, DatasetConfig)
                plan = bulk_edits.refilter(opened.dataset, config, apply=apply)
            except AmharicTtsError as error:
                return error_box(error, page_language)
            changes = [(old.status, new.status) for old, new in zip(plan.before, plan.after, strict=True)]
            return message_box(
                "success",
                t("data.excluded_count", page_language, count=changes.count(("kept", "excluded"))),
                t("data.restored_count", page_language, count=changes.count(("excluded", "kept"))),
                t("data.in_use_count", page_language, count=len(plan.kept)),
                t("data.changes_applied" if apply else "data.preview_only", page_language),
            )

        return refiltered

    inputs = {"project": page.project, "page_language": page.language, **widgets}
    for button, is_applied in ((preview, False), (apply, True)):
        button.click(
            refilter(apply=is_applied), inputs_kwargs=inputs, outputs=message, api_visibility="private", **RAW_INPUTS
        )


def last_settings(project: Project) -> DatasetConfig:
    """Return the settings of the newest preparation; the defaults without one, or if it is damaged."""
    run = next(iter(runs.list_runs(project, VERB)), None)
    try:
        return DatasetConfig.load(run.config) if run else DatasetConfig()
    except AmharicTtsError:  # of an older version, or damaged
        return DatasetConfig()


def read_settings(values: Mapping[str, object], project: Project) -> DatasetConfig:
    """Return the settings of a run in this project; the error names every invalid field."""
    inputs = SEPARATOR.join(uploads.absolute_input(project, name) for name in uploads.read_inputs(project))
    return read_form({**values, "inputs": inputs}, DatasetConfig)
