"""This computer: the doctor's table, live readings, the runs of the project, and a rehearsal to try them with."""

from typing import Any

import gradio as gr

from utils import runs
from utils.config import RehearsalConfig
from utils.ui import views
from utils.ui.examination import examine
from utils.ui.form import build_form, read_form
from utils.ui.page import Page, handler
from utils.ui.run_panel import RunPanel, build_run_panel


def build(page: Page) -> gr.Tab:
    """Lay out the tab."""
    tab = gr.Tab("System", id="system")
    with tab:
        gr.Markdown("## This computer")
        build_doctor(page)
        gr.Markdown("## Runs")
        panel = build_run_panel(page)
        build_rehearsal(page, panel)
    return tab


def build_doctor(page: Page) -> None:
    """Examine on a click; the readings above it come by themselves."""
    button = gr.Button("Examine this computer", elem_id="examine")
    table = gr.HTML(views.note("Not examined yet."), elem_id="doctor")

    @handler
    def doctor(language: str) -> str:
        return views.findings(examine(page.output), language)

    button.click(doctor, page.language, table, api_name="doctor")


def build_rehearsal(page: Page, panel: RunPanel) -> None:
    """Start a child process that only counts."""
    with gr.Accordion("Rehearsal", open=True):
        gr.Markdown("A rehearsal only counts. It shows that start, stop and resume work on this computer.")
        with gr.Row():
            form = build_form(RehearsalConfig)
        button = gr.Button("Start", variant="primary", elem_id="start-rehearsal")

    @handler
    def rehearse(project: str, page_language: str, **values: object) -> tuple[Any, ...]:
        config = read_form(values, RehearsalConfig)
        return panel.started(lambda place: runs.start("rehearse", config, place), project, page_language)

    button.click(
        rehearse,
        inputs_kwargs={"project": page.project, "page_language": page.language, **form},
        outputs=panel.outputs,
        api_name="rehearse",
        concurrency_limit=None,
    )
