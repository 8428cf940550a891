"""What the projects take on the disk, and a way to free what can go without a loss."""

from pathlib import Path
from typing import Any

import gradio as gr

from utils.core import paths
from utils.core.errors import AmharicTtsError
from utils.core.paths import list_projects, project
from utils.ui.confirm import Question, build_question, refuse_another
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, notify, show_errors
from utils.ui.views import cell, note, table
from utils.workspace import disk_usage, projects
from utils.workspace.disk_usage import DiskUsage

TRASH = "trash"
KINDS = {
    "checkpoints": "system.old_checkpoints",
    "features": "system.old_features",
    "resume": "system.old_resume_data",
    "exports": "system.old_exports",
    TRASH: "system.empty_trash",
}
PARTS = {
    "dataset": "common.dataset",
    "features": "system.features",
    "checkpoints": "system.checkpoints",
    "resume": "system.resume_data",
    "ready": "common.finished_model",
    "other": "system.other",
}


def build_disk(page: PageContext, tab: gr.Tab) -> None:
    """Lay out the table, what can go, and the question before it goes."""
    measure = gr.Button(t("system.measure"), elem_id="measure-disk", min_width=130)
    shown = gr.HTML(elem_id="disk-use")
    kind = gr.Radio(
        [(t(key, "en"), name) for name, key in KINDS.items()],
        label=t("system.free_up_space"),
        info=t("system.free_up_space_hint"),
        interactive=True,
        elem_id="spare-kind",
    )
    delete = gr.Button(t("system.delete_files"), variant="stop", interactive=False, min_width=150, elem_id="free-space")
    reason = gr.HTML(elem_id="free-reason")
    question = build_question("free-question", "system.confirm_delete_files", "system.cancel_delete_files")
    _tie_measure(page, tab, measure, kind, shown)
    _tie_free(page, kind, (delete, reason), question, shown)


def show(output: Path, open_one: str, language: str) -> str:
    """Measure every project and show it, with what of the open one can go."""
    rows = [_row(name, disk_usage.measure(project(name, output)), language) for name in list_projects(output)]
    for title, folder in (("common.deleted_projects", output / projects.TRASH), ("system.base_models", paths.MODELS)):
        if size := disk_usage.size_of(folder):
            rows.append((cell(t(title, language), classes="mark"), cell(_size(size)), cell("")))
    titles = ["common.project", "system.total", "system.breakdown"]
    shared = note(t("system.shared_files_hint", language))
    listed = table([t(title, language) for title in titles], rows)
    return listed + shared + _spare(output, open_one, language)


def _row(name: str, use: DiskUsage, language: str) -> tuple[str, ...]:
    parts = [f"{t(title, language)} {_size(size)}" for part, title in PARTS.items() if (size := getattr(use, part))]
    return cell(name, classes="mark"), cell(_size(use.total)), cell(" · ".join(parts))


def _spare(output: Path, open_one: str, language: str) -> str:
    found = spare(output, open_one)
    rows = [(cell(t(KINDS[kind], language)), cell(_size(size))) for kind, size in found.items()]
    return table([t("system.free_up_space", language), t("system.size_disk", language)], rows)


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


def _tie_measure(page: PageContext, tab: gr.Tab, measure: gr.Button, kind: gr.Radio, shown: gr.HTML) -> None:
    @show_errors
    def look(open_one: str, language: str) -> str:
        return show(page.output, open_one, language)

    given = [page.project, page.language]
    measure.click(look, given, shown, api_name="disk_use", **RAW_INPUTS)
    gr.on(
        [tab.select, page.language.change],
        look,
        given,
        shown,
        api_visibility="private",
        show_progress="hidden",
        **RAW_INPUTS,
    )

    def speak(language: str) -> Any:  # noqa: ANN401  # gradio's updates have no type
        return gr.update(choices=[(t(words, language), name) for name, words in KINDS.items()])

    gr.on([page.blocks.load, page.language.change], speak, page.language, kind, **PRIVATE_EVENT)


def _tie_free(
    page: PageContext, kind: gr.Radio, button: tuple[gr.Button, gr.HTML], question: Question, shown: gr.HTML
) -> None:
    """Say how much it is before anything goes."""
    delete, _ = button

    @show_errors
    def can(chosen: str | None, open_one: str, language: str) -> tuple[Any, ...]:
        try:
            size = spare(page.output, open_one).get(chosen or "", 0)
        except AmharicTtsError:  # a name that is none; it is told where it was typed
            size = 0
        words = "" if size else t("system.nothing_to_free" if chosen else "system.choose_files", language)
        return gr.update(interactive=bool(size)), note(words)

    def ask(chosen: str, open_one: str, language: str) -> str:
        size = _size(spare(page.output, open_one).get(chosen, 0))
        words = t("system.ask_delete_files", language, size=size)
        return f"{t(KINDS.get(chosen, ''), language)}: {words}"

    @show_errors
    def go(chosen: str, open_one: str, language: str, about: object) -> tuple[Any, ...]:
        refuse_another(about, chosen, open_one)
        size = free(page.output, open_one, chosen or "")
        notify(t("system.freed", language, size=f"{size / 1e6:,.0f}"))
        return show(page.output, open_one, language), *can(chosen, open_one, language)

    subject = [kind, page.project]
    changes = [page.blocks.load, kind.change, page.project.change, page.language.change]
    gr.on(changes, can, [*subject, page.language], [*button], **RAW_INPUTS, **PRIVATE_EVENT)
    question.tie(delete, subject, page.language, ask, go, [shown, *button], api_name="free_space", **RAW_INPUTS)
