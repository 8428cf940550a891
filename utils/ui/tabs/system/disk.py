"""What the projects take on the disk, and a way to free what can go without a loss."""

from pathlib import Path
from typing import Any

import gradio as gr

from utils.core import paths
from utils.core.errors import AmharicTtsError
from utils.core.paths import list_projects, project
from utils.ui.confirm import Question, build_question, refuse_another
from utils.ui.i18n import say
from utils.ui.page import PRIVATE, RAW, Page, handler, tell
from utils.ui.views import cell, note, table
from utils.workspace import disk_usage, projects
from utils.workspace.disk_usage import DiskUsage

TRASH = "trash"
KINDS = {
    "checkpoints": "Checkpoints that are neither the newest nor the best of their run",
    "features": "Features of the clips; the next training makes them again",
    "resume": "What finished runs would go on from",
    "exports": "Packed models and datasets",
    TRASH: "Deleted projects, for good",
}
PARTS = {
    "dataset": "Dataset",
    "features": "Features",
    "checkpoints": "Checkpoints",
    "resume": "To go on from",
    "ready": "Finished model",
    "other": "Other",
}


def build_disk(page: Page, tab: gr.Tab) -> None:
    """Lay out the table, what can go, and the question before it goes."""
    measure = gr.Button("Measure", elem_id="measure-disk", min_width=130)
    shown = gr.HTML(elem_id="disk-use")
    kind = gr.Radio(
        [(words, name) for name, words in KINDS.items()],
        label="What can go",
        info="Of the open project, except for deleted projects.",
        interactive=True,
        elem_id="spare-kind",
    )
    delete = gr.Button("Delete these files", variant="stop", interactive=False, min_width=150, elem_id="free-space")
    reason = gr.HTML(elem_id="free-reason")
    question = build_question("free-question", "Yes, delete these files", "Keep these files")
    _tie_measure(page, tab, measure, kind, shown)
    _tie_free(page, kind, (delete, reason), question, shown)


def show(output: Path, open_one: str, language: str) -> str:
    """Measure every project and show it, with what of the open one can go."""
    rows = [_row(name, disk_usage.measure(project(name, output)), language) for name in list_projects(output)]
    for title, folder in (("Deleted projects", output / projects.TRASH), ("Base models", paths.MODELS)):
        if size := disk_usage.size_of(folder):
            rows.append((cell(say(title, language), classes="mark"), cell(_size(size)), cell("")))
    titles = ["Project", "Together", "Of which"]
    shared = note(say("Sound and weights that a copy shares with its original are counted in both.", language))
    listed = table([say(title, language) for title in titles], rows)
    return listed + shared + _spare(output, open_one, language)


def _row(name: str, use: DiskUsage, language: str) -> tuple[str, ...]:
    parts = [f"{say(title, language)} {_size(size)}" for part, title in PARTS.items() if (size := getattr(use, part))]
    return cell(name, classes="mark"), cell(_size(use.total)), cell(" · ".join(parts))


def _spare(output: Path, open_one: str, language: str) -> str:
    found = spare(output, open_one)
    rows = [(cell(say(KINDS[kind], language)), cell(_size(size))) for kind, size in found.items()]
    return table([say("What can go", language), say("Size on disk", language)], rows)


def spare(output: Path, open_one: str) -> dict[str, int]:
    """Return how much could go, by kind."""
    return disk_usage.reclaimable(project(open_one, output)) | {TRASH: disk_usage.size_of(output / projects.TRASH)}


def free(output: Path, open_one: str, kind: str) -> int:
    """Delete one kind of files for good and return how many bytes they took."""
    if kind != TRASH:
        return disk_usage.reclaim(project(open_one, output), kind)
    size = disk_usage.size_of(output / projects.TRASH)
    projects.empty_trash(output)
    return size


def _size(size: int) -> str:
    return f"{size / 1e9:,.2f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB" if size else "–"


def _tie_measure(page: Page, tab: gr.Tab, measure: gr.Button, kind: gr.Radio, shown: gr.HTML) -> None:
    @handler
    def look(open_one: str, language: str) -> str:
        return show(page.output, open_one, language)

    given = [page.project, page.language]
    measure.click(look, given, shown, api_name="disk_use", **RAW)
    gr.on(
        [tab.select, page.language.change],
        look,
        given,
        shown,
        api_visibility="private",
        show_progress="hidden",
        **RAW,
    )

    def speak(language: str) -> Any:  # noqa: ANN401  # gradio's updates have no type
        return gr.update(choices=[(say(words, language), name) for name, words in KINDS.items()])

    gr.on([page.blocks.load, page.language.change], speak, page.language, kind, **PRIVATE)


def _tie_free(
    page: Page, kind: gr.Radio, button: tuple[gr.Button, gr.HTML], question: Question, shown: gr.HTML
) -> None:
    """Say how much it is before anything goes."""
    delete, _ = button

    @handler
    def can(chosen: str | None, open_one: str, language: str) -> tuple[Any, ...]:
        try:
            size = spare(page.output, open_one).get(chosen or "", 0)
        except AmharicTtsError:  # a name that is none; it is told where it was typed
            size = 0
        words = "" if size else say("There is nothing of this kind." if chosen else "Choose what can go.", language)
        return gr.update(interactive=bool(size)), note(words)

    def ask(chosen: str, open_one: str, language: str) -> str:
        size = _size(spare(page.output, open_one).get(chosen, 0))
        words = say("Delete {size}? This cannot be undone.", language, size=size)
        return f"{say(KINDS.get(chosen, ''), language)}: {words}"

    @handler
    def go(chosen: str, open_one: str, language: str, about: object) -> tuple[Any, ...]:
        refuse_another(about, chosen, open_one)
        size = free(page.output, open_one, chosen or "")
        tell(say("{size} MB are free again.", language, size=f"{size / 1e6:,.0f}"))
        return show(page.output, open_one, language), *can(chosen, open_one, language)

    subject = [kind, page.project]
    changes = [page.blocks.load, kind.change, page.project.change, page.language.change]
    gr.on(changes, can, [*subject, page.language], [*button], **RAW, **PRIVATE)
    question.tie(delete, subject, page.language, ask, go, [shown, *button], api_name="free_space", **RAW)
