"""The Fine-tuning tab, in the order of work: model and data, settings, training, finished model."""

import gradio as gr

from utils import runs
from utils.ui.i18n import heading, t
from utils.ui.page import PageContext
from utils.ui.run_panel import RunPanel
from utils.ui.tabs.training import render, settings
from utils.ui.tabs.training.forecast import build_forecast
from utils.ui.tabs.training.monitor import (
    LiveView,
    build_comparison,
    build_export,
    build_live,
    connect_comparison,
    connect_live,
    connect_reuse,
    connect_start,
)
from utils.ui.tabs.training.preflight import build_dataset_check, build_memory
from utils.ui.tabs.training.queries import CachedQuery
from utils.ui.tabs.training.run_history import HistoryCache
from utils.ui.tabs.training.settings_form import (
    TrainForm,
    build_files,
    build_model,
    build_presets,
    build_settings,
    connect_presets,
    save_form_in_browser,
)


def build(page: PageContext) -> gr.Tab:
    """Lay out the tab."""
    histories = HistoryCache()

    def facts(run: runs.Run, state: runs.State, language: str) -> str:
        return render.facts(run, state, histories.read(run), language)

    tab = gr.Tab(t("training.tab"), id="training", elem_id="training-tab")
    with tab:
        gr.HTML(f"<style>{render.CSS}</style>")
        form, device = build_form(page)
        gr.Markdown(heading("common.training"))
        button = gr.Button(t("training.train_model"), variant="primary", elem_id="train", interactive=False)
        reason, message = gr.HTML(elem_id="train-reason"), gr.HTML(elem_id="train-errors")
        panel = RunPanel(page, "training", settings.list_trainings, facts, render.log)
        live = build_live()
        chosen, chart, compared = build_comparison()
        widgets = {"device": device, "train": button, "reason": reason, **live, "compared": chosen}
        widgets |= build_export(page, panel)
        view = LiveView(page, form, panel, histories, CachedQuery("device"), widgets)
        connect_live(view, tab)
        connect_start(view, button, message)
        connect_reuse(view, live["reuse"])
        connect_comparison(view, chosen, chart, compared)
        save_form_in_browser(form)
    return tab


def build_form(page: PageContext) -> tuple[TrainForm, gr.HTML]:
    """Lay out everything that is decided before a start; return the form and the description of the device."""
    form = TrainForm(page)
    gr.Markdown(heading("training.model_and_data"))
    build_model(form)
    check = gr.Column()
    gr.Markdown(heading("common.settings"))
    device = gr.HTML(elem_id="device")
    preset, about = build_presets()
    build_settings(form)
    build_forecast(form)
    build_memory(form)
    build_files(form)
    with check:
        build_dataset_check(form)
    connect_presets(form, preset, about)
    return form, device
