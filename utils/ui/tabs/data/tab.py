"""The Data tab: Import makes clips of recordings, Review shows and corrects them."""

from functools import lru_cache
from typing import Any

import gradio as gr

from utils.core.errors import AmharicTtsError
from utils.core.languages import AMHARIC, find
from utils.core.wording import LANGUAGE
from utils.dataset.background_counts import BackgroundCounts, Counts
from utils.dataset.store import Store
from utils.dataset.text_files import is_ethiopic
from utils.studio import runs, uploads
from utils.ui import views
from utils.ui.i18n import t
from utils.ui.page import PageContext, Panel, PanelRequest, build_advanced, connect_live
from utils.ui.run_panel import RunPanel
from utils.ui.settings_form import values_of
from utils.ui.step_bar import next_button
from utils.ui.tabs.data import render
from utils.ui.tabs.data.review import build_review
from utils.ui.tabs.data.settings_form import VERB, build_form, build_tools, problems_box, start
from utils.ui.tabs.data.sources import build_recording, build_sources
from utils.ui.views import message_box, note

SOME_ETHIOPIC = 0.1  # of the letters of a list, most of which may be names of files


def build(page: PageContext) -> gr.Tab:
    tab = gr.Tab(t("data.tab"), id="data", elem_id="data-tab")
    with tab:
        gr.HTML(t("data.loading"), elem_id="data-loading")
        build_summary(page)
        with gr.Tabs(elem_id="data-views") as views:
            with gr.Tab(t("data.import"), id="import", elem_id="data-import"):
                build_sources(page)
                button = build_step(page)
                with gr.Accordion(t("data.record"), open=False, elem_id="record") as section:
                    build_recording(page, section)
            with gr.Tab(t("data.review"), id="review", elem_id="data-review", visible=False) as review:
                build_review(page)
    connect_views(page, views, review, button)
    return tab


def connect_views(page: PageContext, views: gr.Tabs, review: gr.Tab, button: gr.Button) -> None:
    """Show Review when there are clips, at first in place of Import, and the start when there is something to start."""

    def state(seen: dict[str, Any], project: str) -> dict[str, Any]:
        try:
            opened = page.open(project)
            has_clips = Store(opened.dataset).exists
            can_start = bool(uploads.read_inputs(opened)) and runs.active_run(opened, VERB) is None
        except AmharicTtsError:  # shown in the header
            has_clips = can_start = False
        shown = {"review": {"visible": has_clips}, "button": {"visible": can_start}}
        if seen.get("project") == project:  # since then, somebody may have chosen the other view
            return shown
        seen.pop("views", None)  # chosen anew
        return {**shown, "project": project, "views": {"selected": "review" if has_clips else "import"}}

    connect_live(page, "data", state, [page.project], {"review": review, "button": button, "views": views})


def render_fit(request: PanelRequest) -> str:
    """Warn when the script of the texts does not fit the language."""
    share = uploads.ethiopic_share(request.project)
    chosen = str(values_of(request.fields.get("settings")).get("language") or AMHARIC.code)
    try:
        name = find(chosen).native_name
    except AmharicTtsError:  # said when the dataset is created
        return ""
    wants_ethiopic = is_ethiopic(name[0])
    if share is None or (share > 0 if wants_ethiopic else share < SOME_ETHIOPIC):
        return ""
    key = "data.texts_not_ethiopic" if wants_ethiopic else "data.texts_ethiopic"
    return message_box("warning", t(key, name=name))


def build_summary(page: PageContext) -> None:
    """Lay out the size of the dataset, the way on, and where every second went."""
    background = BackgroundCounts()

    def show(request: PanelRequest) -> str:
        store = Store(request.project.dataset)
        if not store.exists:
            return ""
        summary = render.summary(store.totals(), store.count_recordings())
        following = next_button("training-tab", "steps.next_train")
        counts = background.latest(store)
        usage, found = _render_counts(counts, LANGUAGE.get()) if counts else (note("data.counting"), "")
        return (
            views.element("div", summary + views.element("span", following, id="next-training"), class_="summary")
            + views.details("data.audio_usage", usage, "audio-usage")
            + (views.details("data.statistics", found, "statistics") if found else "")
        )

    Panel(page, "summary", show, {})


@lru_cache(maxsize=8)
def _render_counts(counts: Counts, language: str) -> tuple[str, str]:  # noqa: ARG001  # the texts are in it
    """Render the same counts once in a language, not on every tick."""
    return render.ledger(counts.account), render.statistics(counts.statistics)


def build_step(page: PageContext) -> gr.Button:
    """Lay out the settings, the button that creates the dataset, its runs, and under Advanced everything else."""
    form = build_form(page)
    Panel(page, "language-fit", render_fit, {}, reads={"settings": form.widget})
    with gr.Row(elem_classes="start"):
        button = gr.Button(t("data.create_dataset"), variant="primary", elem_id="prepare", visible=False, min_width=180)
        build_advanced(page, "data")
    message = gr.HTML(elem_id="prepare-errors")
    panel = RunPanel(page, "data", [VERB], render.run_facts)
    build_tools(page, form)
    panel.connect_start(button, form.widget, message, start, problems_box)
    return button
