"""The Data tab: Import makes clips of recordings, Review shows and corrects them."""

from pathlib import Path
from typing import Any

import gradio as gr

from utils import runs
from utils.config.flags import command_line
from utils.core.errors import AmharicTtsError
from utils.dataset.store import Store
from utils.ui.i18n import describe_problems, heading, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, Advanced, PageContext, connect_live, show_errors
from utils.ui.run_panel import RunPanel, command_box
from utils.ui.tabs.data import render
from utils.ui.tabs.data.bulk_edit import build_bulk
from utils.ui.tabs.data.clips import build_clips
from utils.ui.tabs.data.results import build_merge, build_result, build_summary
from utils.ui.tabs.data.settings_form import BASIC, VERB, DataForm, build_settings, read_settings
from utils.ui.tabs.data.sources import build_sources
from utils.ui.views import message_box

CSS = Path(__file__).with_name("tab.css")


def build(page: PageContext) -> gr.Tab:
    tab = gr.Tab(t("data.tab"), id="data", elem_id="data-tab")
    with tab:
        form = DataForm(page)  # inside the tab, because of its State
        gr.HTML(f"<style>{CSS.read_text(encoding='utf-8')}</style>")
        overview = build_summary()
        with gr.Tabs(elem_id="data-views") as views:
            with gr.Tab(t("data.import"), id="import", elem_id="data-import"):
                advanced = build_import(form)
            with gr.Tab(t("data.review"), id="review", elem_id="data-review", visible=False) as review:
                build_result(page, advanced, review, overview)
                panel = build_clips(page, advanced)
                with advanced.section():
                    gr.Markdown(heading("data.bulk_edit", level=3))
                    build_bulk(panel, form)
        advanced.connect()

    def choose_view(project: str) -> Any:  # noqa: ANN401  # gradio's updates have no type
        try:
            has_clips = Store(page.open(project).dataset).exists
        except AmharicTtsError:  # shown in the header
            has_clips = False
        return gr.update(selected="review" if has_clips else "import")

    gr.on([page.blocks.load, page.project.change], choose_view, page.project, views, **RAW_INPUTS, **PRIVATE_EVENT)
    return tab


def build_import(form: DataForm) -> Advanced:
    """Lay out what becomes a dataset, and the run that makes it."""
    advanced = Advanced(form.page, "data")
    build_sources(form, advanced)
    build_step(form, advanced)
    build_settings(form, advanced)
    with advanced.section():
        gr.Markdown(heading("data.merge_project", level=3))
        build_merge(form.page)
    return advanced


def build_step(form: DataForm, advanced: Advanced) -> None:
    """Lay out the button that creates the dataset, the runs, and the equivalent command."""
    page = form.page
    with gr.Row(elem_classes="beside"):
        form.lay_out(BASIC)
        button = gr.Button(t("data.create_dataset"), variant="primary", elem_id="prepare", visible=False, min_width=180)
        advanced.place()
    message = gr.HTML(elem_id="prepare-errors")
    panel = RunPanel(page, "data", lambda project: runs.list_runs(project, VERB), render.run_facts)
    with advanced.section():
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

    def state(project: str, inputs: str) -> dict[str, Any]:
        try:
            is_running = runs.active_run(page.open(project), VERB) is not None
        except AmharicTtsError:  # shown in the header
            is_running = True
        return {"button": {"visible": bool(inputs.strip()) and not is_running}}

    inputs: Any = form.widgets["inputs"]
    connect_live(page, state, [page.project, inputs], {"button": button}, [inputs.change, panel.chosen.change])
