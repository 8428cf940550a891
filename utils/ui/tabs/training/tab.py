"""The Fine-tuning tab: what everybody decides, the start, the selected run, and its model."""

from typing import Any

import gradio as gr

from utils import runs
from utils.config import TrainConfig
from utils.core.paths import Project
from utils.ui.i18n import t
from utils.ui.page import RAW_INPUTS, Advanced, PageContext
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

    def ask_stop(run: runs.Run, language: str) -> str:
        history = histories.read(run)
        lost = max(0, history.step - history.saved)
        return t("training.ask_stop", language, name=run.name, saved=history.saved, lost=lost)

    tab = gr.Tab(t("training.tab"), id="training", elem_id="training-tab")
    with tab:
        gr.HTML(f"<style>{render.CSS}</style>")
        form, advanced = TrainForm(page), Advanced(page, "training")
        settings.build_main(form)
        with advanced.section():
            settings.build_settings(form)
            build_memory(form)
            settings.build_files(form)
            build_dataset_check(form)
        device = gr.HTML(elem_id="device")
        build_forecast(form)
        with gr.Row(elem_classes="beside"):
            button = gr.Button(t("training.train_model"), variant="primary", elem_id="train", visible=False)
            advanced.place()
        reason, message = gr.HTML(elem_id="train-reason"), gr.HTML(elem_id="train-errors")
        panel = RunPanel(page, "training", settings.list_trainings, facts, render.log, ask_stop)
        widgets = {"device": device, "train": button, "reason": reason, **build_live(form, panel, advanced)}
        widgets |= build_export(page, panel, advanced)
        with advanced.section():
            widgets["compared"] = build_comparison(page, histories)
        LiveView(form, panel, histories, widgets).connect(tab)
        connect_start(form, panel, button, message)
        settings.connect_licence(form)
        settings.connect_presets(form)
        settings.connect_restore(form)
        advanced.connect()
    return tab


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
