"""The Fine-tuning tab, in the order of work: model and data, settings, training, finished model."""

from typing import Any

import gradio as gr

from utils import runs
from utils.config import TrainConfig
from utils.core.paths import Project
from utils.ui.i18n import heading, t
from utils.ui.page import RAW_INPUTS, PageContext
from utils.ui.run_panel import RunPanel
from utils.ui.tabs.training import render, settings
from utils.ui.tabs.training.monitor import LiveView, build_comparison, build_export, build_live
from utils.ui.tabs.training.preflight import build_dataset_check, build_forecast, build_memory
from utils.ui.tabs.training.run_history import HistoryCache
from utils.ui.tabs.training.settings import TrainForm


def build(page: PageContext) -> gr.Tab:
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
        widgets = {"device": device, "train": button, "reason": reason, **build_live(form, panel)}
        widgets["compared"] = build_comparison(page, histories)
        widgets |= build_export(page, panel)
        LiveView(form, panel, histories, widgets).connect(tab)
        connect_start(form, panel, button, message)
        settings.save_form_in_browser(form)
    return tab


def build_form(page: PageContext) -> tuple[TrainForm, gr.HTML]:
    """Lay out everything that is decided before a start; return the form and the description of the device."""
    form = TrainForm(page)
    gr.Markdown(heading("training.model_and_data"))
    settings.build_model(form)
    check = gr.Column()
    gr.Markdown(heading("common.settings"))
    device = gr.HTML(elem_id="device")
    presets = gr.Column()
    settings.build_settings(form)
    build_forecast(form)
    build_memory(form)
    settings.build_files(form)
    with check:  # reads all settings, as the presets fill all
        build_dataset_check(form)
    with presets:
        settings.build_presets(form)
    return form, device


def connect_start(form: TrainForm, panel: RunPanel, button: gr.Button, message: gr.HTML) -> None:
    """Start a run with the settings of the form; show problems beside the button."""

    def train(project: Project, config: TrainConfig, language: str) -> tuple[Any, ...]:
        return *panel.started(lambda opened: settings.start(config, opened), project.root.name, language), ""

    button.click(
        form.handler(train, lambda error: (*[gr.skip()] * len(panel.outputs), error)),
        inputs_kwargs=form.inputs,
        outputs=[*panel.outputs, message],
        api_name="train",
        show_progress_on=panel.facts,
        concurrency_limit=None,
        **RAW_INPUTS,
    )
