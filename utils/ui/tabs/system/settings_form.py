"""The form of the page's own settings; a change is kept at once."""

from typing import Any

import gradio as gr

from utils.ui.form import build_form, read_form
from utils.ui.i18n import LANGUAGES, t
from utils.ui.page import PRIVATE_EVENT, PageContext, notify, show_errors
from utils.ui.tabs.system.settings import PageSettings, read, write

COLOUR_NAMES = ("system", "light", "dark")
COLOURS = """colours => {
  const dark = colours === "dark" || (colours === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.body.classList.toggle("dark", dark);
}"""


def build_settings(page: PageContext) -> None:
    """Lay out the form and tie it to its file."""
    with gr.Row():
        form = build_form(PageSettings, values=read(page.output))
    form["language"].choices = [(native, code) for code, native in LANGUAGES.items()]  # type: ignore[attr-defined]
    for name, widget in form.items():
        widget.elem_id = f"page-{name}"

    @show_errors
    def save(page_language: str, **values: object) -> None:
        write(read_form(values, PageSettings), page.output)
        notify(t("system.settings_saved", page_language))

    def restore() -> list[Any]:
        kept = read(page.output)
        return [getattr(kept, name) for name in form]

    gr.on(
        [form["colours"].input, form["language"].input, form["kept_days"].submit, form["kept_days"].blur],  # type: ignore[attr-defined]
        save,
        inputs_kwargs={"page_language": page.language, **form},
        api_name="save_page_settings",
        show_progress="hidden",
    )

    def speak(chosen: str, language: str) -> Any:  # noqa: ANN401  # gradio's updates have no type
        return gr.update(choices=[(t(f"system.colours_{name}", language), name) for name in COLOUR_NAMES], value=chosen)

    page.language.change(speak, [form["colours"], page.language], form["colours"], **PRIVATE_EVENT)
    page.blocks.load(restore, None, list(form.values()), **PRIVATE_EVENT)
    gr.on(
        [page.blocks.load, form["colours"].change],  # type: ignore[attr-defined]
        None,
        form["colours"],
        None,
        js=COLOURS,
    )
