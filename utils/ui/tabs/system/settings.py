"""The settings of the page, saved beside the projects; a change is saved at once."""

from pathlib import Path
from typing import Any, Literal

import gradio as gr
from pydantic import Field

from utils.config import Config
from utils.core.errors import ConfigError
from utils.core.paths import SETTINGS
from utils.core.storage import make_folder, write_atomically
from utils.ui.form import build_form, read_form
from utils.ui.i18n import LANGUAGES, t
from utils.ui.page import PRIVATE_EVENT, PageContext, notify, show_errors
from utils.workspace.projects import TRASH_DAYS

THEMES = ("system", "light", "dark")
SET_THEME = """colours => {
  const dark = colours === "dark" || (colours === "system" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.body.classList.toggle("dark", dark);
}"""


class PageSettings(Config):
    """Settings of the page."""

    colours: Literal["system", "light", "dark"] = Field(
        "system", title="Theme", description="Light, dark, or the setting of the visitor's system."
    )
    language: Literal["en", "am"] = Field(
        "en", title="Default language", description="Visitors who chose a language keep it."
    )
    kept_days: int = Field(
        TRASH_DAYS,
        ge=0,
        le=365,
        title="Keep deleted projects (days)",
        description="Older ones are removed when the page starts and after each deletion.",
    )


def settings_path(output: Path) -> Path:
    return output / SETTINGS.name / "page.yaml"


def read(output: Path) -> PageSettings:
    """Read the settings; the defaults when the file is missing or invalid."""
    try:
        return PageSettings.load(settings_path(output)) if settings_path(output).is_file() else PageSettings()
    except ConfigError:  # of another version, or edited by hand; the page must open all the same
        return PageSettings()


def write(settings: PageSettings, output: Path) -> None:
    make_folder(settings_path(output).parent)
    write_atomically(settings_path(output), settings.to_yaml())


def build_settings(page: PageContext) -> None:
    with gr.Row():
        form: dict[str, Any] = dict(build_form(PageSettings, values=read(page.output)))
    colours, language, kept_days = form.values()
    language.choices = [(native, code) for code, native in LANGUAGES.items()]
    for name, widget in form.items():
        widget.elem_id = f"page-{name}"

    @show_errors
    def save(page_language: str, **values: object) -> None:
        write(read_form(values, PageSettings), page.output)
        notify(t("system.settings_saved", page_language))

    def restore() -> list[Any]:
        saved = read(page.output)
        return [getattr(saved, name) for name in form]

    def translate_themes(chosen: str, language: str) -> dict[str, Any]:
        return gr.update(choices=[(t(f"system.colours_{name}", language), name) for name in THEMES], value=chosen)

    gr.on(
        [colours.input, language.input, kept_days.submit, kept_days.blur],
        save,
        inputs_kwargs={"page_language": page.language, **form},
        api_name="save_page_settings",
        show_progress="hidden",
    )
    page.language.change(translate_themes, [colours, page.language], colours, **PRIVATE_EVENT)
    page.blocks.load(restore, None, list(form.values()), **PRIVATE_EVENT)
    gr.on([page.blocks.load, colours.change], None, colours, None, js=SET_THEME)
