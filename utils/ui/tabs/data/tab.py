"""The Data tab: recordings, settings, Step 1, and the clips that it made."""

from pathlib import Path
from typing import Any

import gradio as gr

from utils import runs
from utils.config.flags import command_line
from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.ui.i18n import describe_error, describe_problems, heading, t
from utils.ui.page import RAW_INPUTS, PageContext, connect_live, show_errors
from utils.ui.run_panel import RunPanel, command_box
from utils.ui.tabs.data import render
from utils.ui.tabs.data.bulk_edit import build_bulk
from utils.ui.tabs.data.clips import build_clips
from utils.ui.tabs.data.results import build_merge, build_result
from utils.ui.tabs.data.settings_form import VERB, DataForm, build_settings, read_settings
from utils.ui.tabs.data.sources import build_sources
from utils.ui.views import message_box, note

CSS = Path(__file__).with_name("tab.css")


def build(page: PageContext) -> gr.Tab:
    tab = gr.Tab(t("data.tab"), id="data", elem_id="data-tab")
    with tab:
        form = DataForm(page)  # inside the tab, because of its State
        gr.HTML(f"<style>{CSS.read_text(encoding='utf-8')}</style>")
        gr.Markdown(heading("data.recordings"))
        build_sources(form)
        gr.Markdown(heading("common.settings"))
        build_settings(form)
        build_step(form)
        gr.Markdown(heading("common.dataset"))
        build_result(page)
        gr.Markdown(heading("common.clips"))
        panel = build_clips(page)
        with gr.Accordion(t("data.bulk_edit"), open=False):
            build_bulk(panel, form)
        with gr.Accordion(t("data.merge_project"), open=False) as merge:
            build_merge(page, merge)
    return tab


def build_step(form: DataForm) -> None:
    """Lay out the button of Step 1, why it is disabled, the runs, and the equivalent command."""
    page = form.page
    button = gr.Button(t("data.create_dataset"), variant="primary", elem_id="prepare", interactive=False)
    reason, message = gr.HTML(elem_id="prepare-reason"), gr.HTML(elem_id="prepare-errors")
    panel = RunPanel(page, "data", lambda project: runs.list_runs(project, VERB), render.run_facts)
    with gr.Accordion(t("data.command_line"), open=False):
        show = gr.Button(t("common.show_command"), elem_id="prepare-show-command")
        command = command_box("prepare-command")

    @show_errors
    def prepare(project: str, page_language: str, **values: object) -> dict[Any, Any] | tuple[Any, ...]:
        try:
            config = read_settings(values, page.open(project))
            started = panel.started(lambda opened: runs.start(VERB, config, opened), project, page_language)
        except AmharicTtsError as error:  # names every field that is wrong, next to the button
            return {message: message_box("error", *describe_problems(error, page_language))}
        return *started, ""

    @show_errors
    def show_command(project: str, page_language: str, **values: object) -> tuple[str, str]:
        try:
            opened = page.open(project)
            return f"{command_line(VERB, read_settings(values, opened))} --project {opened.root.name}", ""
        except AmharicTtsError as error:
            return "", message_box("error", *describe_problems(error, page_language))

    frame: dict[str, Any] = {"inputs_kwargs": form.event_inputs, **RAW_INPUTS}
    options: dict[str, Any] = {"api_name": "prepare", "show_progress_on": panel.facts, "concurrency_limit": None}
    button.click(prepare, outputs=[*panel.outputs, message], **options, **frame)
    show.click(show_command, outputs=[command, message], api_name="prepare_command", **frame)

    def state(project: str, inputs: str, language: str) -> dict[str, Any]:
        try:
            obstacle = reason_disabled(page.open(project), inputs, language)
        except AmharicTtsError as error:  # on every tick, so it is shown here and not as a pop-up
            obstacle = describe_error(error, language)
        return {"button": {"interactive": not obstacle}, "reason": note(obstacle)}

    inputs: Any = form.widgets["inputs"]
    live = {"button": button, "reason": reason}
    connect_live(page, state, [page.project, inputs, page.language], live, [inputs.change, panel.chosen.change])


def reason_disabled(project: Project, inputs: str, language: str) -> str:
    """Return why no preparation can be started now; empty if one can."""
    if run := runs.active_run(project, VERB):
        return t("common.name_is_running", language, name=run.name)
    return "" if inputs.strip() else t("data.add_recordings_first", language)
