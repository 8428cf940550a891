"""The open project: select, create, copy, rename, delete and restore one."""

from datetime import datetime
from pathlib import Path
from typing import Any

import gradio as gr

from utils.core.facts import Fact, Progress
from utils.studio import page_settings, paths, projects, runs
from utils.ui import views
from utils.ui.i18n import describe_error, labels, t
from utils.ui.page import FIRST_PROJECT, PRIVATE_EVENT, PageContext, Panel, PanelRequest, Updates, notify, toggle


def project_names(output: Path) -> list[str]:
    """List the projects; an empty folder offers the name that the first run will create."""
    return paths.list_projects(output) or [FIRST_PROJECT]


def choose_project(output: Path, name: str = "") -> dict[str, Any]:
    """List the projects anew, and open the one of this name or else the one that was used last."""
    names = project_names(output)
    return gr.update(choices=names, value=name if name in names else projects.last_used(output) or names[0])


def gone(name: str, output: Path) -> str:
    """Return a message for a tab whose project another one has renamed or deleted; nothing while it is there."""
    return "" if name in project_names(output) else views.message_box("warning", t("project.gone", name=name))


def empty_trash(output: Path) -> None:
    """Remove the projects that were deleted long enough ago."""
    projects.empty_trash(output, days=page_settings.read(output).kept_days)


def build_picker(output: Path) -> tuple[gr.Dropdown, gr.Button]:
    """Lay out the choice of a project, and the button that shows the panel below."""
    names, opened = project_names(output), projects.last_used(output) or FIRST_PROJECT
    texts = labels("common.project", "project.select")
    picker = gr.Dropdown(
        names, value=opened, interactive=True, filterable=False, elem_id="project", min_width=120, **texts
    )
    # The handlers check the value: programs name projects that the page was not built with.
    picker.preprocess = lambda payload: payload  # type: ignore[method-assign]
    return picker, gr.Button(t("project.manage"), elem_id="manage-projects", size="sm", min_width=36, scale=0)


def build_project_panel(page: PageContext, manage: gr.Button) -> None:
    """Lay out the project management, hidden, and connect it."""
    actions = {"new": _create, "rename": _rename, "duplicate": _duplicate, "delete": _delete, "restore": _restore}
    panel = Panel(page, "projects-panel", render, actions, [page.project], visible=False, show_progress="full")
    toggle(manage, panel.html)
    page.project.focus(lambda: gr.update(choices=project_names(page.output)), None, page.project, **PRIVATE_EVENT)


def _opened(request: PanelRequest, project: paths.Project, phrase: str) -> Updates:
    """Say what became of the open project, and open this one."""
    notify(phrase, name=project.name, old=request.name)
    return {request.page.project: choose_project(request.page.output, project.name)}


def _create(request: PanelRequest) -> Updates:
    return _opened(request, projects.create(request.text("name"), request.page.output), "project.created")


def _rename(request: PanelRequest) -> Updates:
    output = request.page.output
    renamed = projects.rename(projects.find(request.name, output), request.text("name"), output)
    return _opened(request, renamed, "project.renamed")


def _duplicate(request: PanelRequest) -> Updates:
    progress, output = gr.Progress(), request.page.output

    def report(fact: Fact) -> None:
        if isinstance(fact, Progress):
            progress((fact.step, fact.total), desc=t("project.copying", done=fact.step, total=fact.total))

    copied = projects.duplicate(projects.find(request.name, output), request.text("name"), output, report)
    return _opened(request, copied, "project.copied")


def _delete(request: PanelRequest) -> Updates:
    output = request.page.output
    deleted = projects.delete(projects.find(request.text("project"), output), output).name
    empty_trash(output)
    notify("project.deleted", name=deleted)
    return {request.page.project: choose_project(output)}


def _restore(request: PanelRequest) -> Updates:
    return _opened(request, projects.restore(request.text("deleted"), request.page.output), "project.restored")


def render(request: PanelRequest) -> str:
    """Render what can be done with the open project; an action that cannot be taken is absent."""
    project = request.page.look(request.name)
    is_running = runs.active_run(project) is not None
    changes = ("duplicate", "rename") if project.root.is_dir() and not is_running else ()
    hint = t("project.name_hint")
    name = views.text_field("name", "project.name", placeholder=hint, data_key=request.name, data_keep="typed")
    buttons = [views.button(action, f"project.{action}", "named") for action in ("new", *changes)]
    reason = views.note("project.is_running") if is_running else ""
    shown = views.row(name) + views.row(*buttons) + reason
    if changes:
        label, question = (t(f"project.{key}", name=request.name) for key in ("delete", "ask_delete"))
        shown += views.row(views.button("delete", label, "quiet", project=request.name, confirm=question))
    for error in paths.list_others(request.page.output):
        shown += views.note(t("project.not_a_project", reason=describe_error(error)))
    return shown + _deleted_projects(request.page.output)


def _deleted_projects(output: Path) -> str:
    """Offer to restore what was deleted; nothing without any."""
    deleted = [
        (f"{item.name} · {datetime.fromtimestamp(item.time).astimezone():%Y-%m-%d %H:%M}", item.id)
        for item in projects.list_deleted(output)
    ]
    if not deleted:
        return ""
    chosen = views.select_field("deleted", "common.deleted_projects", deleted, "project.deleted_hint")
    return views.row(chosen, views.button("restore", "project.restore"))
