"""The Fine-tuning tab: what everybody decides, the checks, the start, the selected run, and its model."""

import time
from functools import partial
from typing import cast

import gradio as gr

from utils.config import TrainConfig
from utils.config.flags import changed_flags, command_line
from utils.core.facts import from_json
from utils.core.storage import make_folder, write_atomically
from utils.core.wording import describe
from utils.studio import command_runs, runs, training_checks
from utils.studio.downloads import give_consent
from utils.studio.facts import DatasetFinding
from utils.studio.paths import UPLOADS
from utils.studio.run_history import HistoryCache
from utils.system.doctor import Finding, Verdict
from utils.ui import views
from utils.ui.i18n import t
from utils.ui.page import PageContext, Panel, PanelRequest, build_advanced, notify
from utils.ui.run_panel import command_status, stop_action
from utils.ui.settings_form import check_action, values_of
from utils.ui.tabs.training import render
from utils.ui.tabs.training import settings as train
from utils.ui.tabs.training.selected_run import (
    TrainPanel,
    build_comparison,
    build_live,
    connect_effects,
    connect_monitor,
)
from utils.ui.tabs.training.settings import SETTINGS, VERB, needs_licence, read_settings, settings_error

MEMORY_TEST = "memory-test"
MARK_SETTINGS = "watch('value', markInvalid);"


# Long because it is a list: each part of the tab from top to bottom, and what connects them.
def build(page: PageContext) -> gr.Tab:
    histories = HistoryCache()
    tab = gr.Tab(t("training.tab"), id="training", elem_id="training-tab")
    with tab, gr.Row(elem_classes="work"):
        with gr.Column(elem_classes="rail", elem_id="training-rail", min_width=0):
            line = gr.HTML(elem_id="rail-line")
            form = train.TrainingForm(page, histories)
            build_licence(page, form.widget)
            reason, message = gr.HTML(elem_id="train-reason"), gr.HTML(elem_id="train-errors", js_on_load=MARK_SETTINGS)
            forecast = gr.HTML(elem_id="disk-forecast")
            with gr.Row(elem_classes="start"):
                button = gr.Button(t("training.train_model"), variant="primary", elem_id="train", visible=False)
                build_advanced(page, "training")
            device = gr.HTML(elem_id="device")
            build_checks(page, form.widget)
            form.build_upload(message)
        with gr.Column(elem_classes="result", min_width=0):
            panel = TrainPanel(page, form, histories)
            widgets = {"line": line, "device": device, "train": button, "reason": reason, **build_live(panel)}
            build_comparison(page, histories)
        connect_monitor(panel, widgets)
        connect_effects(tab, panel, widgets)
        start = partial(train.start, before=page.session.make_room)
        panel.connect_start(button, form.widget, message, start, settings_error)
        form.connect_checks(forecast, message, tab.select)
    return tab


def build_licence(page: PageContext, settings: gr.HTML) -> None:
    """Ask for consent to the licence of a published base model, once on a computer."""

    def accept(_: PanelRequest) -> None:
        give_consent()
        notify("common.consent_saved")

    def show(request: PanelRequest) -> str:
        if not needs_licence(values_of(request.fields.get("settings"))):
            return ""
        button = views.button("accept", "training.accept_licence", "primary")
        notice = views.message_box("warning", "training.licence_notice", "training.accept_licence_hint")
        return notice + views.row(button)

    Panel(page, "licence", show, {"accept": accept}, reads={"settings": settings})


def build_checks(page: PageContext, settings: gr.HTML) -> None:
    """Lay out a button for each check, and what the last one found."""
    checks = (check_dataset, estimate_memory, test_step, show_command, save_settings)
    actions = {check.__name__: check_action(check, read_settings, settings_error) for check in checks}

    def show(request: PanelRequest) -> str:
        status = command_status(MEMORY_TEST, request, "training.step_tested", shows_log=True)
        buttons = views.buttons(
            "training.check_dataset",
            "training.estimate_memory",
            "training.test_step",
            "training.show_command",
            "training.save_settings",
        )
        return views.details("training.checks", views.row(buttons) + status + request.text("_found"), "more-checks")

    reads = {"settings": settings}
    Panel(page, "checks", show, actions | stop_action(MEMORY_TEST), reads=reads, show_progress="minimal")


def test_step(request: PanelRequest, config: TrainConfig) -> str:
    runs.require_idle(request.project, VERB)  # its memory would be measured too
    command_runs.start(MEMORY_TEST, changed_flags(config), request.project, request.page.session.make_room)
    return ""


def check_dataset(request: PanelRequest, config: TrainConfig) -> str:
    found = training_checks.ask("check", config=config, project=str(request.project.root))["findings"]
    facts = [fact for fact in map(from_json, found) if isinstance(fact, DatasetFinding)]
    return views.findings([dataset_finding(fact) for fact in facts])


def dataset_finding(fact: DatasetFinding) -> Finding:
    key = f"DatasetFinding.{fact.check}"
    detail = describe(fact) if fact.count else "common.none"
    cure = "" if fact.verdict == "pass" else f"{key}.cure"
    return Finding(f"{key}.name", cast("Verdict", fact.verdict), detail, cure)


def estimate_memory(_: PanelRequest, config: TrainConfig) -> str:
    return render.memory_tables(training_checks.ask("plan", config=config))


def show_command(_: PanelRequest, config: TrainConfig) -> str:
    return views.note("runs.command_hint") + views.code(command_line(VERB, config))


def save_settings(request: PanelRequest, config: TrainConfig) -> str:
    """Write the settings to a file, and offer it."""
    folder = request.page.output / UPLOADS.name / SETTINGS
    make_folder(folder)
    path = folder / f"{request.name}-train-{time.strftime('%Y%m%d-%H%M%S')}.yaml"
    write_atomically(path, f"# python -m utils train --config {path.name}\n{config.to_yaml()}")
    return views.downloads([(path, path.name)])
