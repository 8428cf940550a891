"""The project that is open, above all tabs: choosing, making, copying, renaming and deleting one, and the sample."""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from utils import paths, projects, sample
from utils.errors import AmharicTtsError
from utils.projects import Deleted, Step
from utils.storage import make_folder
from utils.ui import faults
from utils.ui.data import places
from utils.ui.page import ERROR_SECONDS, QUIET, Page, handler, tell
from utils.ui.system import settings
from utils.ui.views import note
from utils.ui.words import say

FIRST_PROJECT = "default"  # what the command line calls it too
LOOK_SECONDS = 0.2
RAW: dict[str, Any] = {"preprocess": False}  # names are checked below the page, not against the list of one browser tab
PRIVATE: dict[str, Any] = {"api_visibility": "private", **QUIET}

NO_NAME = "Type a name first."
NOTHING_THERE = "This project holds nothing yet."
AT_WORK = "A run of this project is at work; stop it first."
NOTHING_DELETED = "No project was deleted lately."

Update = dict[str, Any]


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
    reasons: gr.HTML
    progress: gr.HTML

    @property
    def live(self) -> list[Any]:
        """Return what follows the disk, in the order of ``look``."""
        return [self.create, self.duplicate, self.rename, self.delete, self.deleted, self.restore, self.reasons]


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
        label="Project",
        info="Choose one, or type a new name.",
        allow_custom_value=True,
        interactive=True,
        elem_id="project",
        min_width=200,
        scale=3,
    )
    button = gr.Button("Sample project", elem_id="sample-project", size="sm", min_width=150, scale=0)
    return picker, button


def tie_picker(page: Page, button: gr.Button) -> None:
    """Open the project that a person chooses; a new name makes a new one, a bad name is refused."""

    @handler
    def choose(name: str, language: str) -> Update:
        try:
            opened, is_new = open_project(page.output, name)
        except AmharicTtsError as error:
            gr.Warning(escape(faults.told(error, language)), duration=ERROR_SECONDS)
            return gr.update()  # what was typed stays; no other project is opened in its place
        if is_new:
            tell(say("Project {name} is made.", language, name=opened))
        return _opened(page, opened)

    @handler
    def make_sample(language: str) -> Update:
        made = sample.create(page.output)
        places.add(made, places.own(places.UPLOADS))
        tell(say("The sample is ready: go on with Step 1 on the Data tab.", language))
        return _opened(page, made.root.name)

    def list_anew() -> Update:
        return gr.update(choices=project_names(page.output))

    page.project.input(choose, [page.project, page.language], page.project, api_name="open_project")
    page.project.focus(list_anew, None, page.project, **PRIVATE)
    button.click(make_sample, page.language, page.project, api_name="sample_project")


def _opened(page: Page, name: str) -> Update:
    update: Update = gr.update(choices=project_names(page.output), value=name)
    return update


def build_desk(page: Page) -> None:
    """Lay out what acts on whole projects, folded away, and tie it."""
    with gr.Accordion("Manage projects", open=False, elem_id="manage-projects"):
        name = gr.Textbox(
            label="Name",
            info="For a new project, for the copy, or instead of the old name.",
            max_lines=1,
            interactive=True,
            elem_id="project-name",
        )
        with gr.Row():
            create = gr.Button("New project", interactive=False, min_width=140, elem_id="new-project")
            duplicate = gr.Button("Duplicate", interactive=False, min_width=140, elem_id="duplicate-project")
            rename = gr.Button("Rename", interactive=False, min_width=140, elem_id="rename-project")
            delete = gr.Button(
                "Delete project", variant="stop", interactive=False, min_width=140, elem_id="delete-project"
            )
        reasons, progress = gr.HTML(elem_id="project-reasons"), gr.HTML(elem_id="project-progress")
        with gr.Column(visible=False) as confirmation:
            question = gr.HTML(elem_id="project-question")
            with gr.Row():
                confirm = gr.Button("Yes, delete the project", variant="stop", min_width=150)
                keep = gr.Button("Keep the project", min_width=150)
        with gr.Row(elem_classes="beside"):
            deleted = gr.Dropdown(
                [],
                label="Deleted projects",
                info="They are kept for some days; see the settings on the System tab.",
                interactive=True,
                elem_id="deleted-projects",
            )
            restore = gr.Button("Bring back", interactive=False, min_width=140, elem_id="restore-project")
    desk = Desk(name, create, duplicate, rename, delete, deleted, restore, reasons, progress)
    _tie_look(page, desk)
    _tie_making(page, desk)
    _tie_deleting(page, desk, (confirmation, question, confirm, keep))


def look(output: Path, project: str, name: str, language: str) -> list[Any]:
    """Say what can be done with the open project now, and why the rest cannot."""
    try:
        place = paths.project(project, output)
        there, busy = place.root.is_dir(), bool(projects.at_work(place))
    except AmharicTtsError:  # it is told where the name was typed
        there, busy = False, False
    missing, unnamed = "" if there else NOTHING_THERE, "" if name.strip() else NO_NAME
    why = {
        "New project": unnamed,
        "Duplicate": missing or (AT_WORK if busy else unnamed),
        "Rename": missing or (AT_WORK if busy else unnamed),
        "Delete project": missing or (AT_WORK if busy else ""),
    }
    gone = projects.list_deleted(output)
    reasons = _reasons(why, language) + ("" if gone else note(say(NOTHING_DELETED, language)))
    choices = [(_shown(one), one.id) for one in gone]
    return [
        *(gr.update(interactive=not reason) for reason in why.values()),
        gr.update(choices=choices, value=choices[0][1] if choices else None),
        gr.update(interactive=bool(gone)),
        reasons,
    ]


def _reasons(why: dict[str, str], language: str) -> str:
    """Say each reason once, behind the buttons that it holds for."""
    buttons: dict[str, list[str]] = {}
    for button, reason in why.items():
        buttons.setdefault(reason, []).append(say(button, language))
    buttons.pop("", None)
    return "".join(note(f"{', '.join(names)}: {say(reason, language)}") for reason, names in buttons.items())


def _shown(one: Deleted) -> str:
    return f"{one.name} · {datetime.fromtimestamp(one.time).astimezone():%Y-%m-%d %H:%M}"


def _tie_look(page: Page, desk: Desk) -> None:
    seen = gr.State(None)

    def live(project: str, name: str, language: str, before: list[Any] | None) -> list[Any]:
        """Send what has changed since ``before``; the rest, such as the choice of a deleted one, stays."""
        found = look(page.output, project, name, language)
        old = before or [None] * len(found)
        return [*(gr.skip() if one == other else one for one, other in zip(found, old, strict=True)), found]

    gr.on(
        [*page.refresh, desk.name.input],
        handler(live),
        [page.project, desk.name, page.language, seen],
        [*desk.live, seen],
        trigger_mode="always_last",
        **RAW,
        **PRIVATE,
    )


def _tie_making(page: Page, desk: Desk) -> None:
    """Make, copy and rename; the name is empty afterwards."""

    @handler
    def create(name: str, language: str) -> tuple[Any, ...]:
        made = projects.create(name, page.output).root.name
        tell(say("Project {name} is made.", language, name=made))
        return _opened(page, made), ""

    @handler
    def rename(project: str, name: str, language: str) -> tuple[Any, ...]:
        renamed = projects.rename(projects.find(project, page.output), name, page.output).root.name
        tell(say("{old} is called {new} now.", language, old=project, new=renamed))
        return _opened(page, renamed), ""

    @handler
    def duplicate(project: str, name: str, language: str) -> Iterator[tuple[Any, ...]]:
        place = projects.find(project, page.output)
        copying = Copying(lambda tell_step: projects.duplicate(place, name, page.output, tell_step).root.name)
        for step in copying.steps():
            yield gr.skip(), gr.skip(), _progress(step, language)
        tell(say("{name} is a copy of {old}.", language, name=copying.name, old=project))
        yield _opened(page, copying.name), "", ""

    outputs = [page.project, desk.name]
    desk.create.click(create, [desk.name, page.language], outputs, api_name="create_project", **RAW)
    named = [page.project, desk.name, page.language]
    desk.rename.click(rename, named, outputs, api_name="rename_project", **RAW)
    desk.duplicate.click(
        duplicate, named, [*outputs, desk.progress], api_name="duplicate_project", concurrency_limit=None, **RAW
    )


class Copying:
    """A copy in a thread of its own: it goes on when its visitor leaves.

    Args:
        task: Does it, tells its steps, and returns the name of the copy.
    """

    def __init__(self, task: Callable[[Callable[[Step], object]], str]) -> None:
        self.name = ""
        self._last = Step(0, 0)
        self._fault: Exception | None = None
        self._task = task
        self._thread = threading.Thread(target=self._work, name="copy", daemon=True)
        self._thread.start()

    def steps(self) -> Iterator[Step]:
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

    def _hear(self, step: Step) -> None:
        self._last = step


def _progress(step: Step, language: str) -> str:
    words = say("Copying: {done} of {total} files", language, done=step.done, total=step.total)
    bar = f'<progress max="{max(1, step.total)}" value="{step.done}" aria-label="{escape(words)}"></progress>'
    return f"{bar}{note(words)}"


def _tie_deleting(page: Page, desk: Desk, asked: tuple[gr.Column, gr.HTML, gr.Button, gr.Button]) -> None:
    """Ask before deleting, about the project that is open at that moment; another choice withdraws the question."""
    confirmation, question, confirm, keep = asked
    about = gr.State("")

    def ask(project: str, language: str) -> tuple[Any, Any, str]:
        words = say(
            "Delete the project {name} with everything in it? It can be brought back below.", language, name=project
        )
        return note(words), gr.update(visible=True), project

    def hide() -> tuple[Any, str]:
        return gr.update(visible=False), ""

    def withdraw(project: str, about: str) -> tuple[Any, str]:
        """Hide the question about another project; that a project was opened may be told after the click on Delete."""
        return hide() if about and about != project else (gr.skip(), about)

    @handler
    def delete(project: str, language: str) -> Update:
        gone = projects.delete(projects.find(project, page.output), page.output).name
        projects.empty_trash(page.output, days=settings.read(page.output).kept_days)
        tell(say("{name} is deleted; it can be brought back.", language, name=gone))
        return _opened(page, project_names(page.output)[0])

    @handler
    def restore(which: str, language: str) -> Update:
        back = projects.restore(which, page.output).root.name
        tell(say("{name} is back.", language, name=back))
        return _opened(page, back)

    desk.delete.click(ask, [page.project, page.language], [question, confirmation, about], **RAW, **PRIVATE)
    keep.click(hide, None, [confirmation, about], **PRIVATE)
    page.project.change(withdraw, [page.project, about], [confirmation, about], **RAW, **PRIVATE)
    confirm.click(delete, [page.project, page.language], page.project, api_name="delete_project", **RAW).then(
        hide, None, [confirmation, about], **PRIVATE
    )
    desk.restore.click(restore, [desk.deleted, page.language], page.project, api_name="restore_project", **RAW)
