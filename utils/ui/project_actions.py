"""What acts on whole projects: making, copying, renaming and deleting one, and bringing one back."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import gradio as gr

from utils import runs
from utils.core import paths
from utils.core.errors import AmharicTtsError
from utils.ui.confirm import Question, build_question, refuse_another
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, changed_updates, notify, show_errors
from utils.ui.projects import Update, opened_as, project_names
from utils.ui.tabs.system import settings
from utils.ui.views import disabled_reasons, note, progress_bar
from utils.workspace import projects
from utils.workspace.projects import CopyProgress, DeletedProject

LOOK_SECONDS = 0.2

NO_NAME = "project.name_missing"
NOTHING_THERE = "project.empty"
AT_WORK = "project.is_running"
NOTHING_DELETED = "project.none_deleted"


@dataclass(frozen=True)
class Desk:
    """The widgets that act on whole projects.

    Attributes:
        name: The name to give.
        create: Makes a project.
        duplicate: Copies the open one.
        rename: Renames it.
        delete: Asks whether to delete it.
        deleted: Those that can be brought back.
        restore: Brings one back.
        reasons: Why a button cannot be used now.
        progress: How far a copy is.
    """

    name: gr.Textbox
    create: gr.Button
    duplicate: gr.Button
    rename: gr.Button
    delete: gr.Button
    deleted: gr.Dropdown
    restore: gr.Button
    disabled_reasons: gr.HTML
    progress: gr.HTML

    @property
    def live(self) -> dict[str, Any]:
        """Return what follows the disk, by the names of ``look``."""
        return {name: widget for name, widget in vars(self).items() if name not in {"name", "progress"}}


def build_desk(page: PageContext) -> None:
    """Lay out what acts on whole projects, folded away, and tie it."""
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
        why_not, progress = gr.HTML(elem_id="project-reasons"), gr.HTML(elem_id="project-progress")
        question = build_question("project-question", "project.confirm_delete", "project.cancel_delete")
        with gr.Row(elem_classes="beside"):
            deleted = gr.Dropdown(
                [],
                label=t("common.deleted_projects"),
                info=t("project.deleted_hint"),
                interactive=True,
                elem_id="deleted-projects",
            )
            restore = gr.Button(t("project.restore"), interactive=False, min_width=140, elem_id="restore-project")
    desk = Desk(name, create, duplicate, rename, delete, deleted, restore, why_not, progress)
    _tie_look(page, desk)
    _tie_making(page, desk)
    _tie_deleting(page, desk, question)


def look(output: Path, project: str, name: str, language: str) -> dict[str, Any]:
    """Say what can be done with the open project now, and why the rest cannot."""
    try:
        place = paths.project(project, output)
        there, busy = place.root.is_dir(), runs.active_run(place) is not None
    except AmharicTtsError:  # it is told where the name was typed
        there, busy = False, False
    missing, unnamed = "" if there else NOTHING_THERE, "" if name.strip() else NO_NAME
    why = {
        "project.new": unnamed,
        "project.duplicate": missing or (AT_WORK if busy else unnamed),
        "project.rename": missing or (AT_WORK if busy else unnamed),
        "project.delete": missing or (AT_WORK if busy else ""),
    }
    gone = projects.list_deleted(output)
    choices = [(_shown(one), one.id) for one in gone]
    locks = ({"interactive": not reason} for reason in why.values())
    return {
        **dict(zip(("create", "duplicate", "rename", "delete"), locks, strict=True)),
        "deleted": {"choices": choices, "value": choices[0][1] if choices else None},
        "restore": {"interactive": bool(gone)},
        "reasons": disabled_reasons(why, language) + note("" if gone else t(NOTHING_DELETED, language)),
    }


def _shown(one: DeletedProject) -> str:
    return f"{one.name} · {datetime.fromtimestamp(one.time).astimezone():%Y-%m-%d %H:%M}"


def _tie_look(page: PageContext, desk: Desk) -> None:
    seen = gr.State({})

    def live(project: str, name: str, language: str, before: Mapping[str, Any]) -> list[Any]:
        """Send what has changed since ``before``; the rest, such as the choice of a deleted one, stays."""
        return changed_updates(before, look(page.output, project, name, language), desk.live)

    gr.on(
        [*page.refresh, desk.name.input],
        show_errors(live),
        [page.project, desk.name, page.language, seen],
        [seen, *desk.live.values()],
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )


def _tie_making(page: PageContext, desk: Desk) -> None:
    """Make, copy and rename; the name is empty afterwards."""

    @show_errors
    def create(name: str, language: str) -> tuple[Any, ...]:
        made = projects.create(name, page.output).root.name
        notify(t("project.created", language, name=made))
        return opened_as(page, made), ""

    @show_errors
    def rename(project: str, name: str, language: str) -> tuple[Any, ...]:
        renamed = projects.rename(projects.find(project, page.output), name, page.output).root.name
        notify(t("project.renamed", language, old=project, new=renamed))
        return opened_as(page, renamed), ""

    @show_errors
    def duplicate(project: str, name: str, language: str) -> Iterator[tuple[Any, ...]]:
        place = projects.find(project, page.output)
        copying = Copying(lambda tell_step: projects.duplicate(place, name, page.output, tell_step).root.name)
        for step in copying.steps():
            yield gr.skip(), gr.skip(), _progress(step, language)
        notify(t("project.copied", language, name=copying.name, old=project))
        yield opened_as(page, copying.name), "", ""

    outputs = [page.project, desk.name]
    desk.create.click(create, [desk.name, page.language], outputs, api_name="create_project", **RAW_INPUTS)
    named = [page.project, desk.name, page.language]
    desk.rename.click(rename, named, outputs, api_name="rename_project", **RAW_INPUTS)
    desk.duplicate.click(
        duplicate, named, [*outputs, desk.progress], api_name="duplicate_project", concurrency_limit=None, **RAW_INPUTS
    )


class Copying:
    """A copy in a thread of its own: it goes on when its visitor leaves.

    Args:
        task: Does it, tells its steps, and returns the name of the copy.
    """

    def __init__(self, task: Callable[[Callable[[CopyProgress], object]], str]) -> None:
        self.name = ""
        self._last = CopyProgress(0, 0)
        self._fault: Exception | None = None
        self._task = task
        self._thread = threading.Thread(target=self._work, name="copy", daemon=True)
        self._thread.start()

    def steps(self) -> Iterator[CopyProgress]:
        """Yield how far it is until it is over; its failure is raised."""
        told = None
        while self._thread.is_alive():
            if self._last != told:
                told = self._last
                yield told
            time.sleep(LOOK_SECONDS)
        if self._fault:
            raise self._fault

    def _work(self) -> None:
        try:
            self.name = self._task(self._hear)
        except Exception as error:  # noqa: BLE001  # whoever waits for it is told
            self._fault = error

    def _hear(self, step: CopyProgress) -> None:
        self._last = step


def _progress(step: CopyProgress, language: str) -> str:
    words = t("project.copying", language, done=step.done, total=step.total)
    return progress_bar(words, step.done, step.total) + note(words)


def _tie_deleting(page: PageContext, desk: Desk, question: Question) -> None:
    def ask(project: str, language: str) -> str:
        words = "project.ask_delete"
        return t(words, language, name=project)

    @show_errors
    def delete(project: str, language: str, about: object) -> Update:
        refuse_another(about, project)
        gone = projects.delete(projects.find(project, page.output), page.output).name
        projects.empty_trash(page.output, days=settings.read(page.output).kept_days)
        notify(t("project.deleted", language, name=gone))
        return opened_as(page, project_names(page.output)[0])

    @show_errors
    def restore(which: str, language: str) -> Update:
        back = projects.restore(which, page.output).root.name
        notify(t("project.restored", language, name=back))
        return opened_as(page, back)

    question.tie(
        desk.delete, [page.project], page.language, ask, delete, page.project, api_name="delete_project", **RAW_INPUTS
    )
    desk.restore.click(restore, [desk.deleted, page.language], page.project, api_name="restore_project", **RAW_INPUTS)
