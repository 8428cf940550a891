"""The open project: select, create, copy, rename, delete and restore one."""

import time
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from utils import runs
from utils.core import paths
from utils.core.errors import AmharicTtsError
from utils.core.storage import make_folder
from utils.ui.i18n import describe_error, labels, t
from utils.ui.page import (
    ERROR_SECONDS,
    PRIVATE_EVENT,
    RAW_INPUTS,
    PageContext,
    build_confirmation,
    connect_live,
    notify,
    refuse_other,
    show_errors,
)
from utils.ui.tabs.system import settings
from utils.ui.views import disabled_reasons, note, progress
from utils.workspace import projects, sample_project, uploads
from utils.workspace.projects import CopyProgress

FIRST_PROJECT = "default"  # the command line's default too
POLL_SECONDS = 0.2

Update = dict[str, Any]

copies = ThreadPoolExecutor(4, thread_name_prefix="copy")  # a copy continues when its visitor leaves


def project_names(output: Path) -> list[str]:
    """List the projects; an empty folder offers the name that the first run will create."""
    return paths.list_projects(output) or [FIRST_PROJECT]


def open_update(page: PageContext, name: str) -> Update:
    return {**gr.update(choices=project_names(page.output), value=name)}


def build_picker(output: Path) -> tuple[gr.Dropdown, gr.Button]:
    names = project_names(output)
    picker = gr.Dropdown(
        names,
        value=names[0],
        **labels("common.project", "project.select_or_create"),
        allow_custom_value=True,
        interactive=True,
        elem_id="project",
        min_width=200,
        scale=3,
    )
    sample = gr.Button(t("project.sample_project"), elem_id="sample-project", size="sm", min_width=150, scale=0)
    return picker, sample


def connect_picker(page: PageContext, sample: gr.Button) -> None:
    """Open the selected project; a new name creates one, an invalid name is refused."""

    @show_errors
    def choose(name: str, language: str) -> Update:
        try:
            root = paths.project(name, page.output).root
            is_new = not root.is_dir()
            make_folder(root)
        except AmharicTtsError as error:
            gr.Warning(escape(describe_error(error, language)), duration=ERROR_SECONDS)
            return gr.update()  # keep what was typed; do not open another project instead
        if is_new:
            notify(t("project.created", language, name=root.name))
        return open_update(page, root.name)

    @show_errors
    def create_sample(language: str) -> Update:
        made = sample_project.create(page.output)
        uploads.add_input(made, uploads.project_input(uploads.UPLOADS))
        notify(t("project.sample_ready", language))
        return open_update(page, made.root.name)

    def refresh() -> Update:
        return gr.update(choices=project_names(page.output))

    page.project.input(choose, [page.project, page.language], page.project, api_name="open_project")
    page.project.focus(refresh, None, page.project, **PRIVATE_EVENT)
    sample.click(create_sample, page.language, page.project, api_name="sample_project")


def build_panel(page: PageContext) -> None:
    """Lay out the project management, collapsed, and connect it."""

    def button(key: str, variant: Any = "secondary") -> gr.Button:  # noqa: ANN401  # gradio's literal
        elem_id = f"{key.removeprefix('project.')}-project"
        return gr.Button(t(key), variant=variant, interactive=False, min_width=140, elem_id=elem_id)

    with gr.Accordion(t("project.manage"), open=False, elem_id="manage-projects"):
        name = gr.Textbox(max_lines=1, interactive=True, elem_id="project-name", **labels("project.name"))
        with gr.Row():
            keys = ("project.new", "project.duplicate", "project.rename")
            live: dict[str, Any] = {key: button(key) for key in keys}
            live["project.delete"] = button("project.delete", "stop")
        live["reasons"] = gr.HTML(elem_id="project-reasons")
        copying = gr.HTML(elem_id="project-progress")
        confirmation = build_confirmation("project-question", "project.confirm_delete", "project.cancel_delete")
        with gr.Row(elem_classes="beside"):
            hints = labels("common.deleted_projects", "project.deleted_hint")
            live["deleted"] = gr.Dropdown([], interactive=True, elem_id="deleted-projects", **hints)
            live["restore"] = button("project.restore")
    connect_create_and_copy(page, name, copying, live)

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
    """Return updates of the buttons, by the ids of their labels, and why some are disabled."""
    try:
        opened = paths.project(project, output)
        exists, busy = opened.root.is_dir(), runs.active_run(opened) is not None
    except AmharicTtsError:  # shown where the name was typed
        exists, busy = False, False
    missing = "" if exists else "project.empty"
    unnamed = "" if name.strip() else "project.name_missing"
    running = "project.is_running" if busy else ""
    why = {
        "project.new": unnamed,
        "project.duplicate": missing or running or unnamed,
        "project.rename": missing or running or unnamed,
        "project.delete": missing or running,
    }
    choices = [
        (f"{item.name} · {datetime.fromtimestamp(item.time).astimezone():%Y-%m-%d %H:%M}", item.id)
        for item in projects.list_deleted(output)
    ]
    return {
        **{key: {"interactive": not reason} for key, reason in why.items()},
        "deleted": {"choices": choices, "value": choices[0][1] if choices else None},
        "restore": {"interactive": bool(choices)},
        "reasons": disabled_reasons(why, language) + note("" if choices else t("project.none_deleted", language)),
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
    def duplicate(project: str, name: str, language: str) -> Iterator[tuple[Any, ...]]:
        steps, shown = deque([CopyProgress(0, 0)], maxlen=1), None
        copy = copies.submit(projects.duplicate, projects.find(project, page.output), name, page.output, steps.append)
        while not copy.done():
            if (step := steps[-1]) != shown:
                shown = step
                label = t("project.copying", language, done=step.done, total=step.total)
                yield gr.skip(), gr.skip(), progress(label, step.done, step.total)
            time.sleep(POLL_SECONDS)
        copied = copy.result().root.name
        notify(t("project.copied", language, name=copied, old=project))
        yield open_update(page, copied), "", ""

    outputs = [page.project, name]
    named = [page.project, name, page.language]
    buttons["project.new"].click(create, [name, page.language], outputs, api_name="create_project", **RAW_INPUTS)
    buttons["project.rename"].click(rename, named, outputs, api_name="rename_project", **RAW_INPUTS)
    options: dict[str, Any] = {"api_name": "duplicate_project", "concurrency_limit": None, **RAW_INPUTS}
    buttons["project.duplicate"].click(duplicate, named, [*outputs, copying], **options)
