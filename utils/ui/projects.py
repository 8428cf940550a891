"""The open project: select, create, copy, rename, delete and restore one."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import gradio as gr

from utils import runs
from utils.core import paths
from utils.core.errors import AmharicTtsError
from utils.ui.i18n import labels, t
from utils.ui.page import (
    PRIVATE_EVENT,
    RAW_INPUTS,
    PageContext,
    build_confirmation,
    connect_live,
    notify,
    refuse_other,
    show_errors,
    toggle,
)
from utils.ui.tabs.system import settings
from utils.ui.views import note
from utils.workspace import projects
from utils.workspace.projects import CopyProgress

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
    options: dict[str, Any] = {"interactive": True, "elem_id": "project", "min_width": 200, "scale": 3}
    picker = gr.Dropdown(names, value=names[0], **labels("common.project", "project.select"), **options)
    # The handlers check the value: programs name projects that the page was not built with.
    picker.preprocess = lambda payload: payload  # type: ignore[method-assign]
    return picker, gr.Button(t("project.manage"), elem_id="manage-projects", size="sm", min_width=150, scale=0)


def build_panel(page: PageContext, manage: gr.Button) -> None:
    """Lay out the project management, hidden, and connect it."""

    def button(key: str, variant: Any = "secondary") -> gr.Button:  # noqa: ANN401  # gradio's literal
        elem_id = f"{key.removeprefix('project.')}-project"
        return gr.Button(t(key), variant=variant, visible=False, min_width=140, elem_id=elem_id)

    with gr.Column(visible=False, elem_id="projects-panel") as panel:
        name = gr.Textbox(max_lines=1, interactive=True, elem_id="project-name", **labels("project.name"))
        with gr.Row():
            keys = ("project.new", "project.duplicate", "project.rename")
            live: dict[str, Any] = {key: button(key) for key in keys}
            live["project.delete"] = button("project.delete", "stop")
        live["reason"] = gr.HTML(elem_id="project-reason")
        copying = gr.HTML(elem_id="project-progress")
        confirmation = build_confirmation("project-question", "project.confirm_delete", "project.cancel_delete")
        with gr.Row(elem_classes="beside"):
            hints = labels("common.deleted_projects", "project.deleted_hint")
            live["deleted"] = gr.Dropdown([], interactive=True, visible=False, elem_id="deleted-projects", **hints)
            live["restore"] = button("project.restore")
    toggle(manage, panel)
    connect_create_and_copy(page, name, copying, live)

    def refresh() -> Update:
        return gr.update(choices=project_names(page.output))

    page.project.focus(refresh, None, page.project, **PRIVATE_EVENT)

    def state(project: str, name: str, language: str) -> dict[str, Any]:
        return available_actions(page.output, project, name, language)

    connect_live(page, state, [page.project, name, page.language], live, [name.input])

    def ask(project: str, language: str) -> str:
        return t("project.ask_delete", language, name=project)

    @show_errors
    def delete(project: str, language: str, asked: object) -> Update:
        refuse_other(asked, project)
        deleted = projects.delete(projects.find(project, page.output), page.output).name
        projects.empty_trash(page.output, days=settings.read(page.output).kept_days)
        notify(t("project.deleted", language, name=deleted))
        return open_update(page, project_names(page.output)[0])

    @show_errors
    def restore(which: str, language: str) -> Update:
        restored = projects.restore(which, page.output).root.name
        notify(t("project.restored", language, name=restored))
        return open_update(page, restored)

    event: dict[str, Any] = {"outputs": page.project, **RAW_INPUTS}
    confirmation.connect(
        live["project.delete"], [page.project], page.language, ask, delete, api_name="delete_project", **event
    )
    live["restore"].click(restore, [live["deleted"], page.language], api_name="restore_project", **event)


def available_actions(output: Path, project: str, name: str, language: str) -> dict[str, Any]:
    """Return updates of the panel: a button that cannot act is hidden."""
    try:
        opened = paths.project(project, output)
        exists, busy = opened.root.is_dir(), runs.active_run(opened) is not None
    except AmharicTtsError:  # shown in the header
        exists, busy = False, False
    is_named, can_change = bool(name.strip()), exists and not busy
    visible = {
        "project.new": is_named,
        "project.duplicate": is_named and can_change,
        "project.rename": is_named and can_change,
        "project.delete": can_change,
    }
    choices = [
        (f"{item.name} · {datetime.fromtimestamp(item.time).astimezone():%Y-%m-%d %H:%M}", item.id)
        for item in projects.list_deleted(output)
    ]
    return {
        **{key: {"visible": can_act} for key, can_act in visible.items()},
        "reason": note(t("project.is_running", language)) if busy else "",
        "deleted": {"choices": choices, "value": choices[0][1] if choices else None, "visible": bool(choices)},
        "restore": {"visible": bool(choices)},
    }


def connect_create_and_copy(page: PageContext, name: gr.Textbox, copying: gr.HTML, buttons: Mapping[str, Any]) -> None:
    """Create, rename or copy a project under the name in the box."""

    @show_errors
    def create(name: str, language: str) -> tuple[Any, ...]:
        made = projects.create(name, page.output).root.name
        notify(t("project.created", language, name=made))
        return open_update(page, made), ""

    @show_errors
    def rename(project: str, name: str, language: str) -> tuple[Any, ...]:
        renamed = projects.rename(projects.find(project, page.output), name, page.output).root.name
        notify(t("project.renamed", language, old=project, new=renamed))
        return open_update(page, renamed), ""

    @show_errors
    def duplicate(project: str, name: str, language: str, progress: gr.Progress = gr.Progress()) -> tuple[Any, ...]:  # noqa: B008  # as gradio wants it
        def report(step: CopyProgress) -> None:
            label = t("project.copying", language, done=step.done, total=step.total)
            progress((step.done, step.total), desc=label)

        copied = projects.duplicate(projects.find(project, page.output), name, page.output, report).root.name
        notify(t("project.copied", language, name=copied, old=project))
        return open_update(page, copied), ""

    outputs = [page.project, name]
    named = [page.project, name, page.language]
    buttons["project.new"].click(create, [name, page.language], outputs, api_name="create_project", **RAW_INPUTS)
    buttons["project.rename"].click(rename, named, outputs, api_name="rename_project", **RAW_INPUTS)
    options: dict[str, Any] = {"api_name": "duplicate_project", "concurrency_limit": None, **RAW_INPUTS}
    buttons["project.duplicate"].click(duplicate, named, outputs, show_progress_on=copying, **options)
