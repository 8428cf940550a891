"""The Fine-tuning tab: what everybody decides, the start, the selected run, and its model."""

from collections.abc import Mapping
from typing import Any

import gradio as gr

from utils.core.errors import AmharicTtsError
from utils.training.history import HistoryCache
from utils.ui.i18n import t
from utils.ui.page import RAW_INPUTS, Advanced, PageContext, show_errors
from utils.ui.tabs.training import settings as train
from utils.ui.tabs.training.monitor import TrainPanel, build_comparison, build_live, connect_effects, connect_monitor
from utils.ui.tabs.training.preflight import build_checks, build_licence


def build(page: PageContext) -> gr.Tab:
    histories = HistoryCache()
    tab = gr.Tab(t("training.tab"), id="training", elem_id="training-tab")
    with tab:
        form, preset, about = train.build_form()
        build_licence(page, form.widget)
        build_checks(page, form.widget)
        device, forecast = gr.HTML(elem_id="device"), gr.HTML(elem_id="disk-forecast")
        advanced = Advanced(page, "training")
        with gr.Row(elem_classes="beside"):
            button = gr.Button(t("training.train_model"), variant="primary", elem_id="train", visible=False)
            advanced.place()
            with advanced.section():
                upload = gr.Column()
        reason, message = gr.HTML(elem_id="train-reason"), gr.HTML(elem_id="train-errors")
        with upload:
            train.build_upload(page, form, message)
        panel = TrainPanel(page, form, histories)
        widgets = {"device": device, "train": button, "reason": reason, **build_live(panel, advanced)}
        build_comparison(page, histories)
        connect_monitor(panel, widgets)
        connect_effects(tab, panel, widgets)
        connect_start(panel, button, message)
        train.connect_form(page, form, preset, about, forecast, message)
        advanced.connect()
    return tab


def connect_start(panel: TrainPanel, button: gr.Button, message: gr.HTML) -> None:
    """Start or queue a run with the settings of the form; show problems beside the button."""

    @show_errors
    def start(project: str, settings: Mapping[str, object] | None, language: str) -> tuple[Any, ...]:
        try:
            config = train.read_settings(settings, panel.page.open(project))
            return *panel.started(lambda opened: train.start(config, opened), project, language), ""
        except AmharicTtsError as error:
            return gr.skip(), train.settings_error(error, language)

    inputs = [panel.page.project, panel.form.widget, panel.page.language]
    options: dict[str, Any] = {"show_progress_on": panel.facts, "concurrency_limit": None, **RAW_INPUTS}
    button.click(start, inputs, [*panel.outputs, message], api_name="train", **options)
