"""The open project: select, create, copy, rename, delete and restore one."""

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from utils import runs
from utils.core import paths
from utils.core.errors import AmharicTtsError
from utils.core.storage import make_folder
from utils.ui.i18n import describe_error, t
from utils.ui.page import (
    ERROR_SECONDS,
    PRIVATE_EVENT,
    RAW_INPUTS,
    Confirmation,
    PageContext,
    build_confirmation,
    changed_updates,
    notify,
    refuse_other,
    show_errors,
)
from utils.ui.tabs.system import settings
from utils.ui.views import disabled_reasons, note, progress
from utils.workspace import projects, sample_project, uploads
from utils.workspace.projects import CopyProgress, DeletedProject

FIRST_PROJECT = "default"  # the command line's default too
POLL_SECONDS = 0.2

Update = dict[str, Any]

copies = ThreadPoolExecutor(4, thread_name_prefix="copy")  # a copy continues when its visitor leaves


@dataclass(frozen=True)
class ProjectPanel:
    """The widgets that manage projects."""

    name: gr.Textbox
    create: gr.Button
    duplicate: gr.Button
    rename: gr.Button
    delete: gr.Button
    deleted: gr.Dropdown
    restore: gr.Button
    reasons: gr.HTML
    progress: gr.HTML

    @property
    def live(self) -> dict[str, Any]:
        """Return the widgets that follow the disk, by the names of ``available_actions``."""
        return {name: widget for name, widget in vars(self).items() if name not in {"name", "progress"}}


def project_names(output: Path) -> list[str]:
    """List the projects; an empty folder offers the name that the first run will create."""
    return paths.list_projects(output) or [FIRST_PROJECT]


def open_project(output: Path, name: str) -> tuple[str, bool]:
    """Return the project's name as its folder has it, and whether it was created."""
    root = paths.project(name, output).root
    is_new = not root.is_dir()
    make_folder(root)
    return root.name, is_new


def open_update(page: PageContext, name: str) -> Update:
    """Return the update of the project picker that opens a project."""
    update: Update = gr.update(choices=project_names(page.output), value=name)
    return update


def build_picker(output: Path) -> tuple[gr.Dropdown, gr.Button]:
    """Lay out the project picker and the button of the sample project."""
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
    sample = gr.Button(t("project.sample_project"), elem_id="sample-project", size="sm", min_width=150, scale=0)
    return picker, sample


def connect_picker(page: PageContext, sample: gr.Button) -> None:
    """Open the selected project; a new name creates one, an invalid name is refused."""

    @show_errors
    def choose(name: str, language: str) -> Update:
        try:
            opened, is_new = open_project(page.output, name)
        except AmharicTtsError as error:
            gr.Warning(escape(describe_error(error, language)), duration=ERROR_SECONDS)
            return gr.update()  # keep what was typed; do not open another project instead
        if is_new:
            notify(t("project.created", language, name=opened))
        return open_update(page, opened)

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
    with gr.Accordion(t("project.manage"), open=False, elem_id="manage-projects"):
        name = gr.Textbox(
            label=t("project.name"),
            info=t("project.name_hint"),
            max_lines=1,
            interactive=True,
            elem_id="project-name",
        )
        with gr.Row():
            create = gr.Button(t("project.new"), interactive=False, min_width=140, elem_id="new-project")
            duplicate = gr.Button(t("project.duplicate"), interactive=False, min_width=140, elem_id="duplicate-project")
            rename = gr.Button(t("project.rename"), interactive=False, min_width=140, elem_id="rename-project")
            delete = gr.Button(
                t("project.delete"), variant="stop", interactive=False, min_width=140, elem_id="delete-project"
            )
        reasons, copy_progress = gr.HTML(elem_id="project-reasons"), gr.HTML(elem_id="project-progress")
        confirmation = build_confirmation("project-question", "project.confirm_delete", "project.cancel_delete")
        with gr.Row(elem_classes="beside"):
            deleted = gr.Dropdown(
                [],
                label=t("common.deleted_projects"),
                info=t("project.deleted_hint"),
                interactive=True,
                elem_id="deleted-projects",
            )
            restore = gr.Button(t("project.restore"), interactive=False, min_width=140, elem_id="restore-project")
    panel = ProjectPanel(name, create, duplicate, rename, delete, deleted, restore, reasons, copy_progress)
    _connect_live(page, panel)
    _connect_create_and_copy(page, panel)
    _connect_delete_and_restore(page, panel, confirmation)


def available_actions(output: Path, project: str, name: str, language: str) -> dict[str, Any]:
    """Return updates of the buttons for the open project, and why some are disabled."""
    try:
        place = paths.project(project, output)
        exists, busy = place.root.is_dir(), runs.active_run(place) is not None
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
    deleted = projects.list_deleted(output)
    choices = [(_deleted_label(item), item.id) for item in deleted]
    buttons = ({"interactive": not reason} for reason in why.values())
    return {
        **dict(zip(("create", "duplicate", "rename", "delete"), buttons, strict=True)),
        "deleted": {"choices": choices, "value": choices[0][1] if choices else None},
        "restore": {"interactive": bool(deleted)},
        "reasons": disabled_reasons(why, language) + note("" if deleted else t("project.none_deleted", language)),
    }


def _deleted_label(item: DeletedProject) -> str:
    return f"{item.name} · {datetime.fromtimestamp(item.time).astimezone():%Y-%m-%d %H:%M}"


def _connect_live(page: PageContext, panel: ProjectPanel) -> None:
    shown = gr.State({})

    def refresh(project: str, name: str, language: str, before: Mapping[str, Any]) -> list[Any]:
        """Send only what has changed, so that the selection of a deleted project stays."""
        return changed_updates(before, available_actions(page.output, project, name, language), panel.live)

    gr.on(
        [*page.refresh, panel.name.input],
        show_errors(refresh),
        [page.project, panel.name, page.language, shown],
        [shown, *panel.live.values()],
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )


def _connect_create_and_copy(page: PageContext, panel: ProjectPanel) -> None:
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
        copy = Copy(projects.find(project, page.output), name, page.output)
        for step in copy.steps():
            label = t("project.copying", language, done=step.done, total=step.total)
            yield gr.skip(), gr.skip(), progress(label, step.done, step.total)
        notify(t("project.copied", language, name=copy.name, old=project))
        yield open_update(page, copy.name), "", ""

    outputs = [page.project, panel.name]
    panel.create.click(create, [panel.name, page.language], outputs, api_name="create_project", **RAW_INPUTS)
    named = [page.project, panel.name, page.language]
    panel.rename.click(rename, named, outputs, api_name="rename_project", **RAW_INPUTS)
    panel.duplicate.click(
        duplicate, named, [*outputs, panel.progress], api_name="duplicate_project", concurrency_limit=None, **RAW_INPUTS
    )


class Copy:
    """A copy of a project that is made in the background."""

    def __init__(self, source: paths.Project, name: str, output: Path) -> None:
        self._step = CopyProgress(0, 0)
        self._future = copies.submit(projects.duplicate, source, name, output, self._on_step)

    def _on_step(self, step: CopyProgress) -> None:
        self._step = step

    def steps(self) -> Iterator[CopyProgress]:
        """Yield each new step until the copy is done; raise its error."""
        shown = None
        while not self._future.done():
            if self._step != shown:
                shown = self._step
                yield shown
            time.sleep(POLL_SECONDS)
        self._future.result()

    @property
    def name(self) -> str:
        """Return the name of the finished copy."""
        return self._future.result().root.name


def _connect_delete_and_restore(page: PageContext, panel: ProjectPanel, confirmation: Confirmation) -> None:
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

    confirmation.connect(
        panel.delete, [page.project], page.language, ask, delete, page.project, api_name="delete_project", **RAW_INPUTS
    )
    panel.restore.click(restore, [panel.deleted, page.language], page.project, api_name="restore_project", **RAW_INPUTS)
