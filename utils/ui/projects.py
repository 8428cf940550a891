"""The open project: select, create, copy, rename, delete and restore one."""

from datetime import datetime
from pathlib import Path
from typing import Any

import gradio as gr

from utils.core.facts import Fact, Progress
from utils.studio import page_settings, paths, projects, runs
from utils.ui import views
from utils.ui.i18n import describe_error, labels, t
from utils.ui.page import PRIVATE_EVENT, PageContext, Panel, PanelRequest, Updates, notify, toggle

FIRST_PROJECT = "default"  # the command line's default too

Update = dict[str, Any]


def project_names(output: Path) -> list[str]:
    """List the projects; an empty folder offers the name that the first run will create."""
    return paths.list_projects(output) or [FIRST_PROJECT]


def open_update(page: PageContext, name: str) -> Update:
    return {**gr.update(choices=project_names(page.output), value=name)}


def build_picker(output: Path) -> tuple[gr.Dropdown, gr.Button]:
    """Lay out the choice of a project, and the button that shows the panel below."""
    names = project_names(output)
    texts = labels("common.project", "project.select")
    picker = gr.Dropdown(names, value=names[0], interactive=True, elem_id="project", min_width=120, **texts)
    # The handlers check the value: programs name projects that the page was not built with.
    picker.preprocess = lambda payload: payload  # type: ignore[method-assign]
    return picker, gr.Button(t("project.manage"), elem_id="manage-projects", size="sm", min_width=36, scale=0)


def build_project_panel(page: PageContext, manage: gr.Button) -> None:
    """Lay out the project management, hidden, and connect it."""

    def opened(name: str, phrase: str, **values: str) -> Updates:
        notify(t(phrase, name=name, new=name, **values))
        return {page.project: open_update(page, name)}

    def existing(request: PanelRequest) -> paths.Project:
        return projects.find(request.name, page.output)

    def create(request: PanelRequest) -> Updates:
        return opened(projects.create(request.text("name"), page.output).root.name, "project.created")

    def rename(request: PanelRequest) -> Updates:
        renamed = projects.rename(existing(request), request.text("name"), page.output).root.name
        return opened(renamed, "project.renamed", old=request.name)

    def duplicate(request: PanelRequest) -> Updates:
        progress = gr.Progress()

        def report(fact: Fact) -> None:
            if isinstance(fact, Progress):
                progress((fact.step, fact.total), desc=t("project.copying", done=fact.step, total=fact.total))

        copied = projects.duplicate(existing(request), request.text("name"), page.output, report).root.name
        return opened(copied, "project.copied", old=request.name)

    def delete(request: PanelRequest) -> Updates:
        deleted = projects.delete(projects.find(request.text("project"), page.output), page.output).name
        projects.empty_trash(page.output, days=page_settings.read(page.output).kept_days)
        notify(t("project.deleted", name=deleted))
        return {page.project: open_update(page, project_names(page.output)[0])}

    def restore(request: PanelRequest) -> Updates:
        return opened(projects.restore(request.text("deleted"), page.output).root.name, "project.restored")

    actions = {"new": create, "rename": rename, "duplicate": duplicate, "delete": delete, "restore": restore}
    panel = Panel(page, "projects-panel", render, actions, [page.project], visible=False, show_progress="full")
    toggle(manage, panel.html)
    page.project.focus(lambda: gr.update(choices=project_names(page.output)), None, page.project, **PRIVATE_EVENT)


def render(request: PanelRequest) -> str:
    """Render what can be done with the open project; an action that cannot be taken is absent."""
    project = request.project
    is_running = runs.active_run(project) is not None
    changes = ("duplicate", "rename") if project.root.is_dir() and not is_running else ()
    about = {"placeholder": t("project.name_hint"), "data_key": request.name, "data_keep": "typed"}
    name = views.text_field("name", "project.name", **about)
    buttons = [views.button(action, f"project.{action}", "named") for action in ("new", *changes)]
    reason = views.note("project.is_running") if is_running else ""
    shown = views.row(name) + views.row(*buttons) + reason
    if changes:
        label, question = (t(f"project.{key}", name=request.name) for key in ("delete", "ask_delete"))
        shown += views.row(views.button("delete", label, "quiet", project=request.name, confirm=question))
    shown += "".join(
        views.note(t("project.not_a_project", reason=describe_error(error)))
        for error in paths.list_others(request.page.output)
    )
    deleted = [
        (f"{item.name} · {datetime.fromtimestamp(item.time).astimezone():%Y-%m-%d %H:%M}", item.id)
        for item in projects.list_deleted(request.page.output)
    ]
    if not deleted:
        return shown
    chosen = views.select_field("deleted", "common.deleted_projects", deleted, "project.deleted_hint")
    return shown + views.row(chosen, views.button("restore", "project.restore"))
