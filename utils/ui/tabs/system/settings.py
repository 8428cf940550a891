"""The settings of the page; a change is saved at once."""

from typing import Any

import gradio as gr

from utils.ui.form import build_form, read_form
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, PageContext, notify, show_errors
from utils.workspace.page_settings import PageSettings, read, write

SET_THEME = """colours => {
  const dark = colours === "dark" || (colours === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.body.classList.toggle("dark", dark);
}"""


def build_settings(page: PageContext) -> None:
    with gr.Row():
        form: dict[str, Any] = dict(build_form(PageSettings, values=read(page.output)))
    colours, language, kept_days = form.values()
    for name, widget in form.items():
        widget.elem_id = f"page-{name}"

    @show_errors
    def save(page_language: str, **values: object) -> None:
        write(read_form(values, PageSettings), page.output)
        notify(t("system.settings_saved", page_language))

    def restore() -> list[Any]:
        saved = read(page.output)
        return [getattr(saved, name) for name in form]

    gr.on(
        [colours.input, language.input, kept_days.submit, kept_days.blur],
        save,
        inputs_kwargs={"page_language": page.language, **form},
        api_visibility="private",
        show_progress="hidden",
    )
    page.blocks.load(restore, None, list(form.values()), **PRIVATE_EVENT)
    gr.on([page.blocks.load, colours.change], None, colours, None, js=SET_THEME)
