"""This computer: the doctor, the runs of the project, base models and their licence, disk, settings and guides."""

from typing import Any

import gradio as gr

from utils import runs
from utils.config import RehearsalConfig
from utils.system.doctor import Finding
from utils.ui import views
from utils.ui.form import build_form, read_form
from utils.ui.i18n import heading, t
from utils.ui.page import PRIVATE_EVENT, PageContext, show_errors
from utils.ui.run_panel import RunPanel, build_run_panel
from utils.ui.tabs.system.about import build_guides, build_versions
from utils.ui.tabs.system.base_models import build_downloads
from utils.ui.tabs.system.disk import build_disk
from utils.ui.tabs.system.doctor_check import examine
from utils.ui.tabs.system.licence import build_licence
from utils.ui.tabs.system.settings_form import build_settings


def build(page: PageContext) -> gr.Tab:
    """Lay out the tab."""
    tab = gr.Tab(t("system.tab"), id="system", elem_id="system-tab")
    with tab:
        gr.Markdown(heading("system.this_computer"))
        build_doctor(page)
        gr.Markdown(heading("system.runs"))
        panel = build_run_panel(page)
        build_rehearsal(page, panel)
        gr.Markdown(heading("system.base_models"))
        build_licence(page)
        build_downloads(page)
        gr.Markdown(heading("common.disk"))
        build_disk(page, tab)
        gr.Markdown(heading("system.page_settings"))
        build_settings(page)
        gr.Markdown(heading("system.guides"))
        build_guides(page)
        gr.Markdown(heading("system.versions"))
        build_versions(page)
    return tab


def build_doctor(page: PageContext) -> None:
    """Examine on a click; the readings above it come by themselves."""
    button = gr.Button(t("system.run_diagnostics"), elem_id="examine")
    table, found = gr.HTML(elem_id="doctor"), gr.State([])

    @show_errors
    def doctor(language: str) -> tuple[str, list[Finding]]:
        findings = examine(page.output)
        return show(findings, language), findings

    def show(findings: list[Finding], language: str) -> str:
        return views.findings(findings, language) if findings else views.note(t("system.no_diagnostics", language))

    button.click(doctor, page.language, [table, found], api_name="doctor")
    gr.on([page.blocks.load, page.language.change], show, [found, page.language], table, **PRIVATE_EVENT)


def build_rehearsal(page: PageContext, panel: RunPanel) -> None:
    """Start a child process that only counts."""
    with gr.Accordion(t("system.rehearsal"), open=True):
        gr.Markdown(t("system.rehearsal_about"))
        with gr.Row():
            form = build_form(RehearsalConfig)
        button = gr.Button(t("system.start"), variant="primary", elem_id="start-rehearsal")

    @show_errors
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
