"""The Data tab: Import makes clips of recordings, Review shows and corrects them."""

from typing import Any

import gradio as gr

from utils import runs
from utils.core.errors import AmharicTtsError
from utils.dataset.queries import BackgroundCounts
from utils.dataset.store import Store
from utils.ui.i18n import describe_problems, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, Advanced, PageContext, connect_live, show_errors
from utils.ui.run_panel import RunPanel
from utils.ui.tabs.data import render
from utils.ui.tabs.data.results import build_charts, build_summary
from utils.ui.tabs.data.review import build_review
from utils.ui.tabs.data.settings_form import VERB, Values, build_form, build_tools, read_settings
from utils.ui.tabs.data.sources import build_sources
from utils.ui.views import message_box
from utils.workspace import uploads


def build(page: PageContext) -> gr.Tab:
    tab = gr.Tab(t("data.tab"), id="data", elem_id="data-tab")
    background = BackgroundCounts()
    with tab:
        build_summary(page, background)
        with gr.Tabs(elem_id="data-views") as views:
            with gr.Tab(t("data.import"), id="import", elem_id="data-import"):
                build_sources(page)
                button = build_step(page, background)
            with gr.Tab(t("data.review"), id="review", elem_id="data-review", visible=False) as review:
                build_review(page)

    def state(project: str) -> dict[str, Any]:
        """Show Review when there are clips, and the start when there is something to start with."""
        try:
            opened = page.open(project)
            has_clips = Store(opened.dataset).exists
            can_start = bool(uploads.read_inputs(opened)) and runs.active_run(opened, VERB) is None
        except AmharicTtsError:  # shown in the header
            has_clips = can_start = False
        return {"review": {"visible": has_clips}, "button": {"visible": can_start}}

    def choose_view(project: str) -> Any:  # noqa: ANN401  # gradio's updates have no type
        return gr.update(selected="review" if state(project)["review"]["visible"] else "import")

    with tab:  # which holds the State of this
        connect_live(page, state, [page.project], {"review": review, "button": button})
    gr.on([page.blocks.load, page.project.change], choose_view, page.project, views, **RAW_INPUTS, **PRIVATE_EVENT)
    return tab


def build_step(page: PageContext, background: BackgroundCounts) -> gr.Button:
    """Lay out the settings, the button that creates the dataset, its runs, and under Advanced everything else."""
    form, advanced = build_form(page), Advanced(page, "data")
    with gr.Row(elem_classes="beside"):
        button = gr.Button(t("data.create_dataset"), variant="primary", elem_id="prepare", visible=False, min_width=180)
        advanced.place()
    message = gr.HTML(elem_id="prepare-errors")
    panel = RunPanel(page, "data", lambda project: runs.list_runs(project, VERB), render.run_facts)
    with advanced.section():
        build_tools(page, form)
        build_charts(page, background)
    advanced.connect()

    @show_errors
    def prepare(project: str, settings: Values | None, language: str) -> tuple[Any, ...]:
        try:
            config = read_settings(settings or {}, page.open(project))
            return *panel.started(lambda opened: runs.start(VERB, config, opened), project, language), ""
        except AmharicTtsError as error:  # names every field that is wrong, next to the button
            return gr.skip(), message_box("error", *describe_problems(error, language))

    inputs = [page.project, form.widget, page.language]
    options: dict[str, Any] = {"show_progress_on": panel.facts, "concurrency_limit": None, **RAW_INPUTS}
    button.click(prepare, inputs, [*panel.outputs, message], api_name="prepare", **options)
    return button
