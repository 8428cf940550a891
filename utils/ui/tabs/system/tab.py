"""The System drawer: doctor, runs, base models and their licence, disk, settings and versions."""

import importlib.metadata
import json
import platform
from collections.abc import Callable
from pathlib import Path

import gradio as gr

from utils.core import monitor
from utils.core.errors import ConfigError
from utils.core.processes import query
from utils.studio import paths
from utils.studio.page_settings import PageSettings, read, settings_path, write
from utils.system.doctor import Finding
from utils.ui import views
from utils.ui.i18n import heading
from utils.ui.page import PRIVATE_EVENT, QUEUED_EVENT, PageContext, Panel, PanelRequest, notify
from utils.ui.run_panel import RunPanel
from utils.ui.settings_form import SettingsForm, Values, values_of
from utils.ui.tabs.system.base_models import build_base_models
from utils.ui.tabs.system.disk import build_disk
from utils.ui.views import cell, error_box, table

DOCTOR_TIMEOUT = 300.0  # seconds; loading torch from a cold disk has taken 40, and the test of a GPU takes at most 180
PACKAGES = ("gradio", "torch", "torchaudio", "coqui-tts", "transformers", "faster-whisper", "accelerate", "numpy")
SET_THEME = """({colours}) => {
  const dark = colours === "dark" || (colours === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.body.classList.toggle("dark", dark);
}"""


def build(page: PageContext) -> None:
    """Lay out the sections."""
    for title, build_part in SECTIONS.items():
        gr.Markdown(heading(title))
        build_part(page)


def build_computer(page: PageContext) -> None:
    """Lay out the diagnostics, the test of a GPU, and what is installed where."""

    def doctor(*words: str) -> dict[str, list[Finding]]:
        # in a child process, because the page must not load torch
        return {"_findings": query(["-m", "utils", "doctor", "--json", *words], read_findings, timeout=DOCTOR_TIMEOUT)}

    def render(request: PanelRequest) -> str:
        found = request.fields.get("_findings")
        tests = ["system.run_diagnostics"]
        if monitor.read_once(page.output).gpu_name:
            tests.append("system.test_gpu")
        installed = views.details("system.versions", versions(page.output))
        buttons = views.row(views.buttons(*tests))
        return buttons + (views.findings(found) if found else "") + installed

    actions = {"run_diagnostics": lambda _: doctor("--output", str(page.output)), "test_gpu": lambda _: doctor("--gpu")}
    Panel(page, "computer", render, actions, show_progress="minimal")


def read_findings(text: str) -> list[Finding]:
    return [Finding(**finding) for finding in json.loads(text)]


def build_settings(page: PageContext) -> None:
    form = SettingsForm(PageSettings, {"": [*PageSettings.model_fields]}, "page")
    message = gr.HTML()

    def save(values: Values) -> str:
        try:
            settings = PageSettings.parse(values_of(values), source="The form")
        except ConfigError as error:  # perhaps of a number that is being typed
            return error_box(error)
        if settings != read(page.output):
            write(settings, page.output)
            notify("system.settings_saved")
        return ""

    page.on(form.widget.change, save, [form.widget], message, trigger_mode="always_last", **QUEUED_EVENT)
    form.widget.change(None, form.widget, None, js=SET_THEME)
    loaded = page.blocks.load(lambda: form.value(read(page.output)), None, form.widget, **PRIVATE_EVENT)
    loaded.then(None, form.widget, None, js=SET_THEME)


def versions(output: Path) -> str:
    def version(name: str) -> str:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            return "system.missing"

    rows = {
        "Python": f"{platform.python_version()} · {platform.platform()}",
        **{name: version(name) for name in PACKAGES},
        "system.projects": str(output),
        "system.base_models": str(paths.MODELS),
        "system.page_settings": str(settings_path(output)),
    }
    cells = [(cell(name, classes="mark"), value) for name, value in rows.items()]
    return table(("common.what", "system.version_or_path"), cells)


SECTIONS: dict[str, Callable[[PageContext], object]] = {
    "system.this_computer": build_computer,
    "system.base_models": build_base_models,
    "common.disk": build_disk,
    "system.page_settings": build_settings,
    "system.runs": RunPanel,
}
