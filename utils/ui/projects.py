"""The project that is open, above all tabs: choosing one, making one by typing its name, and the sample."""

from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from utils.core import paths
from utils.core.errors import AmharicTtsError
from utils.core.storage import make_folder
from utils.ui import error_text
from utils.ui.i18n import t
from utils.ui.page import ERROR_SECONDS, PRIVATE_EVENT, PageContext, notify, show_errors
from utils.workspace import sample_project, uploads

FIRST_PROJECT = "default"  # what the command line calls it too

Update = dict[str, Any]


def project_names(output: Path) -> list[str]:
    """List the projects; an empty folder offers the name that the first run will create."""
    return paths.list_projects(output) or [FIRST_PROJECT]


def open_project(output: Path, name: str) -> tuple[str, bool]:
    """Return the project's name as its folder has it, and whether it had to be made."""
    root = paths.project(name, output).root
    is_new = not root.is_dir()
    make_folder(root)
    return root.name, is_new


def build_picker(output: Path) -> tuple[gr.Dropdown, gr.Button]:
    """Lay out the choice of the project and the button of the sample."""
    names = project_names(output)
    picker = gr.Dropdown(
        names,
        value=names[0],
        label=t("common.project"),
        info=t("project.select_or_create"),
        allow_custom_value=True,
        interactive=True,
        elem_id="project",
        min_width=200,
        scale=3,
    )
    button = gr.Button(t("project.sample_project"), elem_id="sample-project", size="sm", min_width=150, scale=0)
    return picker, button


def tie_picker(page: PageContext, button: gr.Button) -> None:
    """Open the project that a person chooses; a new name makes a new one, a bad name is refused."""

    @show_errors
    def choose(name: str, language: str) -> Update:
        try:
            opened, is_new = open_project(page.output, name)
        except AmharicTtsError as error:
            gr.Warning(escape(error_text.describe(error, language)), duration=ERROR_SECONDS)
            return gr.update()  # what was typed stays; no other project is opened in its place
        if is_new:
            notify(t("project.created", language, name=opened))
        return opened_as(page, opened)

    @show_errors
    def make_sample(language: str) -> Update:
        made = sample_project.create(page.output)
        uploads.add_input(made, uploads.project_input(uploads.UPLOADS))
        notify(t("project.sample_ready", language))
        return opened_as(page, made.root.name)

    def list_anew() -> Update:
        return gr.update(choices=project_names(page.output))

    page.project.input(choose, [page.project, page.language], page.project, api_name="open_project")
    page.project.focus(list_anew, None, page.project, **PRIVATE_EVENT)
    button.click(make_sample, page.language, page.project, api_name="sample_project")


def opened_as(page: PageContext, name: str) -> Update:
    """Show a project as the open one."""
    update: Update = gr.update(choices=project_names(page.output), value=name)
    return update
