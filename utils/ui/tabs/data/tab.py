"""The Data tab: recordings, settings, Step 1, and the clips that it made."""

from collections.abc import Mapping
from typing import Any

import gradio as gr

from utils.core.errors import AmharicTtsError
from utils.ui.i18n import describe_error, describe_problems, heading, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, changed_updates, show_errors
from utils.ui.run_panel import RunPanel, command_box
from utils.ui.tabs.data import clip_render, render, start
from utils.ui.tabs.data.bulk_edit import build_bulk
from utils.ui.tabs.data.clip_table import build_clips
from utils.ui.tabs.data.results import build_merge, build_result
from utils.ui.tabs.data.settings_form import DataForm, build_settings
from utils.ui.tabs.data.sources import build_sources
from utils.ui.views import message_box, note


def build(page: PageContext) -> gr.Tab:
    """Lay out the tab."""
    tab = gr.Tab(t("data.tab"), id="data", elem_id="data-tab")
    with tab:
        form = DataForm(page)  # inside the tab, because of its State
        gr.HTML(f"<style>{render.CSS}{clip_render.CSS}</style>")
        gr.Markdown(heading("data.recordings"))
        build_sources(form)
        gr.Markdown(heading("common.settings"))
        build_settings(form)
        build_step(form)
        gr.Markdown(heading("common.dataset"))
        build_result(page)
        gr.Markdown(heading("common.clips"))
        desk = build_clips(page)
        with gr.Accordion(t("data.bulk_edit"), open=False):
            build_bulk(desk, form)
        with gr.Accordion(t("data.merge_project"), open=False) as others:
            build_merge(page, others)
    return tab


def build_step(form: DataForm) -> RunPanel:
    """Lay out the button of Step 1, why it is disabled, and the runs."""
    page = form.page
    button = gr.Button(t("data.create_dataset"), variant="primary", elem_id="prepare", interactive=False)
    reason, message = gr.HTML(elem_id="prepare-reason"), gr.HTML(elem_id="prepare-errors")
    panel = RunPanel(page, "data", start.preparations, render.facts)
    with gr.Accordion(t("data.command_line"), open=False):
        show = gr.Button(t("common.show_command"), elem_id="prepare-show-command")
        command = command_box("prepare-command")
    _tie_start(form, panel, button, message)
    _tie_reason(form, panel, button, reason)
    _tie_command(form, show, command, message)
    return panel


def _tie_start(form: DataForm, panel: RunPanel, button: gr.Button, message: gr.HTML) -> None:
    """Start a run with the settings of the form; every error is shown next to the button."""
    page = form.page

    @show_errors
    def prepare(project: str, page_language: str, **values: object) -> tuple[Any, ...]:
        try:
            config = start.complete(values, page.open(project))
            started = panel.started(lambda opened: start.start(config, opened), project, page_language)
        except AmharicTtsError as error:
            return *[gr.skip()] * len(panel.outputs), message_box("error", *describe_problems(error, page_language))
        return *started, ""

    button.click(
        prepare,
        inputs_kwargs=form.given,
        outputs=[*panel.outputs, message],
        api_name="prepare",
        show_progress_on=panel.facts,
        concurrency_limit=None,
        **RAW_INPUTS,
    )


def _tie_reason(form: DataForm, panel: RunPanel, button: gr.Button, reason: gr.HTML) -> None:
    """Show why Step 1 cannot be started now."""
    page, inputs, seen = form.page, form.widgets["inputs"], gr.State({})

    def update(project: str, inputs_text: str, language: str, before: Mapping[str, Any]) -> list[Any]:
        try:
            obstacle = start.obstacle(page.open(project), inputs_text, language)
        except AmharicTtsError as error:  # runs on every tick, so it is shown here and not as a pop-up
            obstacle = describe_error(error, language)
        state = {"button": {"interactive": not obstacle}, "reason": note(obstacle)}
        return changed_updates(before, state, ("button", "reason"))

    gr.on(
        [*page.refresh, inputs.change, panel.chosen.change],  # type: ignore[attr-defined]
        show_errors(update),
        [page.project, inputs, page.language, seen],
        [seen, button, reason],
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )


def _tie_command(form: DataForm, show: gr.Button, command: gr.Textbox, message: gr.HTML) -> None:
    """Show the equivalent command."""
    page = form.page

    @show_errors
    def write(project: str, page_language: str, **values: object) -> tuple[Any, ...]:
        try:
            opened = page.open(project)
            return start.command(start.complete(values, opened), opened), ""
        except AmharicTtsError as error:
            return "", message_box("error", *describe_problems(error, page_language))

    show.click(write, inputs_kwargs=form.given, outputs=[command, message], api_name="prepare_command", **RAW_INPUTS)
