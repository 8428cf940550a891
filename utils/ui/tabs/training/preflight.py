"""Checks before the start: the licence, the dataset, memory, a test of one step, and the command line."""

import shlex
import time
from collections.abc import Callable
from typing import Any

import gradio as gr

from utils import runs
from utils.config import TrainConfig
from utils.config.flags import command_line
from utils.core.errors import AmharicTtsError, RunBusyError
from utils.core.paths import UPLOADS
from utils.core.storage import make_folder, write_atomically
from utils.runs.background_jobs import BackgroundJobs
from utils.system.doctor import Finding
from utils.ui import views
from utils.ui.i18n import t, translate
from utils.ui.page import PageContext, Panel, PanelRequest, notify
from utils.ui.run_panel import job_status, run_command
from utils.ui.tabs.training import render
from utils.ui.tabs.training.settings import SETTINGS, TIERS, VERB, needs_licence, read_settings, settings_error
from utils.workspace import training_checks
from utils.xtts.hub import accept_licence

MEMORY_TEST = "memory_test"
ACTIONS = ("check_dataset", "estimate_memory", "test_step", "show_command", "save_settings")


def build_licence(page: PageContext, settings: gr.HTML) -> None:
    """Ask for consent to the licence of a published base model, once on a computer."""

    def accept(request: PanelRequest) -> None:
        accept_licence()
        notify(t("common.consent_saved", request.language))

    def show(request: PanelRequest) -> str:
        if not needs_licence(request.fields.get("settings") or {}):
            return ""
        button = views.button("accept", t("training.accept_licence", request.language), "primary")
        text, hint = (t(f"training.{key}", request.language) for key in ("licence_notice", "accept_licence_hint"))
        return views.message_box("warning", text, hint) + views.row(button)

    Panel(page, "licence", show, {"accept": accept}, reads={"settings": settings})


def build_checks(page: PageContext, settings: gr.HTML) -> None:
    """Lay out a button for each check, and what the last one found."""
    jobs = BackgroundJobs()

    def action(check: Callable[[PanelRequest, TrainConfig], str]) -> Callable[[PanelRequest], dict[str, str]]:
        def act(request: PanelRequest) -> dict[str, str]:
            try:
                config = read_settings(request.fields.get("settings"), request.project)
                return {"found": check(request, config)}
            except AmharicTtsError as error:
                return {"found": settings_error(error, request.language)}

        return act

    def test_step(request: PanelRequest, config: TrainConfig) -> str:
        if run := runs.active_run(request.project, VERB):
            raise RunBusyError(f"{run.title} is running and would be measured too.", hint="Stop it first.")
        task = run_command(*shlex.split(command_line("memory-test", config))[3:])
        jobs.start(request.name, MEMORY_TEST, task)
        return ""

    def stop(request: PanelRequest) -> None:
        jobs.stop(request.name, MEMORY_TEST)

    checks = (check_dataset, estimate_memory, test_step, show_command, save_settings)
    actions: dict[str, Any] = {name: action(check) for name, check in zip(ACTIONS, checks, strict=True)}

    def show(request: PanelRequest) -> str:
        buttons = (views.button(name, t(f"training.{name}", request.language)) for name in ACTIONS)
        status = job_status(jobs.get(request.name, MEMORY_TEST), request.language)
        return f'<div class="more">{views.row(*buttons)}{status}{request.text("found")}</div>'

    options: dict[str, Any] = {"reads": {"settings": settings}, "show_progress": "minimal"}
    Panel(page, "checks", show, actions | {"stop": stop}, **options)


def check_dataset(request: PanelRequest, config: TrainConfig) -> str:
    found = training_checks.ask("check", config=config, project=str(request.project.root))["findings"]
    language = request.language
    findings = [
        Finding(translate(name, language), verdict, translate(detail, language), translate(cure, language))
        for name, verdict, detail, cure in found
    ]
    return views.findings(findings, language)


def estimate_memory(request: PanelRequest, config: TrainConfig) -> str:
    plan = training_checks.ask("plan", config=config)
    peaks = training_checks.preset_peaks(TIERS, config.version, config.custom_model, config.max_audio_length)
    return render.memory_tables(plan, peaks, request.language)


def show_command(request: PanelRequest, config: TrainConfig) -> str:
    return render.command(command_line(VERB, config), request.language)


def save_settings(request: PanelRequest, config: TrainConfig) -> str:
    """Write the settings to a file, and offer it."""
    folder = request.page.output / UPLOADS.name / SETTINGS
    make_folder(folder)
    path = folder / f"{request.name}-train-{time.strftime('%Y%m%d-%H%M%S')}.yaml"
    write_atomically(path, f"# python -m utils train --config {path.name}\n{config.to_yaml()}")
    return views.downloads([(path, path.name)])
