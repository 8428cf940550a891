"""The settings of the page; a change is saved at once."""

from collections.abc import Mapping
from typing import Any

import gradio as gr

from utils.core.errors import ConfigError
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, notify, show_errors
from utils.ui.settings_form import SettingsForm
from utils.ui.views import error_box
from utils.workspace.page_settings import PageSettings, read, write

SET_THEME = """({colours}) => {
  const dark = colours === "dark" || (colours === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.body.classList.toggle("dark", dark);
}"""


def build_settings(page: PageContext) -> None:
    form = SettingsForm(PageSettings, {"": [*PageSettings.model_fields]}, "page")
    message = gr.HTML()

    @show_errors
    def save(values: Mapping[str, object] | None, language: str) -> str:
        try:
            settings = PageSettings.parse(values or {}, source="The form")
        except ConfigError as error:  # perhaps of a number that is being typed
            return error_box(error, language)
        if settings != read(page.output):
            write(settings, page.output)
            notify(t("system.settings_saved", language))
        return ""

    # in the queue, which shows messages
    options: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private", **RAW_INPUTS}
    form.widget.change(save, [form.widget, page.language], message, trigger_mode="always_last", **options)
    form.widget.change(None, form.widget, None, js=SET_THEME)
    loaded = page.blocks.load(lambda: form.value(read(page.output)), None, form.widget, **PRIVATE_EVENT)
    loaded.then(None, form.widget, None, js=SET_THEME)
