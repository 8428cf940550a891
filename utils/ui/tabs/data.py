"""Data, in the order in which a person works: recordings, settings, Step 1, and the clips that came of it."""

from collections.abc import Mapping
from typing import Any

import gradio as gr

from utils.errors import AmharicTtsError
from utils.ui import faults
from utils.ui.data import clip_views, showing, starting
from utils.ui.data.bulk_part import build_bulk
from utils.ui.data.clips_part import build_clips
from utils.ui.data.form_part import DataForm, build_settings
from utils.ui.data.result_part import build_merge, build_result
from utils.ui.data.shelf import Shelf
from utils.ui.data.sources_part import build_sources
from utils.ui.page import PRIVATE, RAW, Page, changed, handler
from utils.ui.run_panel import RunPanel, build_run_panel, command_box
from utils.ui.views import note, told


def build(page: Page) -> gr.Tab:
    """Lay out the tab."""
    shelf = Shelf()
    tab = gr.Tab("Data", id="data", elem_id="data-tab")
    with tab:
        form = DataForm(page)  # inside: a browser counts its State too, and would mistake it for a tab of its own
        gr.HTML(f"<style>{showing.CSS}{clip_views.CSS}</style>")
        gr.Markdown("## Recordings")
        build_sources(form, shelf)
        gr.Markdown("## Settings")
        build_settings(form)
        build_step(form)
        gr.Markdown("## Dataset")
        build_result(page, shelf)
        gr.Markdown("## Clips")
        desk = build_clips(page, shelf)
        with gr.Accordion("Many clips at once", open=False):
            build_bulk(desk, form)
        with gr.Accordion("Add the clips of another project", open=False) as others:
            build_merge(page, others)
    return tab


def build_step(form: DataForm) -> RunPanel:
    """Lay out the start, with the reason why it cannot be, and the runs."""
    page = form.page
    button = gr.Button("Step 1 - Create Dataset", variant="primary", elem_id="prepare", interactive=False)
    reason, said = gr.HTML(elem_id="prepare-reason"), gr.HTML(elem_id="prepare-faults")
    panel = build_run_panel(page, "data", starting.preparations, showing.facts)
    with gr.Accordion("The same on the command line", open=False):
        show = gr.Button("Show command", elem_id="prepare-show-command")
        command = command_box("prepare-command")
    _tie_start(form, panel, button, said)
    _tie_reason(form, panel, button, reason)
    _tie_command(form, show, command, said)
    return panel


def _tie_start(form: DataForm, panel: RunPanel, button: gr.Button, said: gr.HTML) -> None:
    """Start a run with the settings of the form; every fault is shown beside the button."""
    page = form.page

    @handler
    def prepare(project: str, page_language: str, **values: object) -> tuple[Any, ...]:
        try:
            config = starting.complete(values, page.open(project))
            begun = panel.started(lambda place: starting.start(config, place), project, page_language)
        except AmharicTtsError as error:
            return *[gr.skip()] * len(panel.outputs), told("faults", *faults.lines(error, page_language))
        return *begun, ""

    button.click(
        prepare,
        inputs_kwargs=form.given,
        outputs=[*panel.outputs, said],
        api_name="prepare",
        show_progress_on=panel.facts,
        concurrency_limit=None,
        **RAW,
    )


def _tie_reason(form: DataForm, panel: RunPanel, button: gr.Button, reason: gr.HTML) -> None:
    """Say why Step 1 cannot be started now."""
    page, inputs, seen = form.page, form.widgets["inputs"], gr.State({})

    def look(project: str, named: str, language: str, before: Mapping[str, Any]) -> list[Any]:
        try:
            found = starting.obstacle(page.open(project), named, language)
        except AmharicTtsError as error:  # asked on every tick: it stays in its place
            found = faults.told(error, language)
        return changed(before, {"button": {"interactive": not found}, "reason": note(found)}, ("button", "reason"))

    gr.on(
        [*page.refresh, inputs.change, panel.chosen.change],  # type: ignore[attr-defined]
        handler(look),
        [page.project, inputs, page.language, seen],
        [seen, button, reason],
        **RAW,
        **PRIVATE,
    )


def _tie_command(form: DataForm, show: gr.Button, command: gr.Textbox, said: gr.HTML) -> None:
    """Write the command that does the same."""
    page = form.page

    @handler
    def write(project: str, page_language: str, **values: object) -> tuple[Any, ...]:
        try:
            place = page.open(project)
            return starting.command(starting.complete(values, place), place), ""
        except AmharicTtsError as error:
            return "", told("faults", *faults.lines(error, page_language))

    show.click(write, inputs_kwargs=form.given, outputs=[command, said], api_name="prepare_command", **RAW)
