"""The disk usage of the projects, and a way to free space without losing work."""

from pathlib import Path
from typing import Any

import gradio as gr

from utils.core import paths
from utils.core.errors import AmharicTtsError
from utils.core.paths import list_projects, project
from utils.ui.i18n import t
from utils.ui.page import (
    PRIVATE_EVENT,
    RAW_INPUTS,
    Confirmation,
    PageContext,
    build_confirmation,
    notify,
    refuse_other,
    show_errors,
)
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
    """Lay out the table, the files that can be deleted, and the confirmation."""
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
    confirmation = build_confirmation("free-question", "system.confirm_delete_files", "system.cancel_delete_files")
    _connect_measure(page, tab, measure, kind, shown)
    _connect_free(page, kind, (delete, reason), confirmation, shown)


def usage_tables(output: Path, project_name: str, language: str) -> str:
    """Return the size of every project, and what can be deleted."""
    rows = [_row(name, disk_usage.measure(project(name, output)), language) for name in list_projects(output)]
    for title, folder in (("common.deleted_projects", output / projects.TRASH), ("system.base_models", paths.MODELS)):
        if size := disk_usage.size_of(folder):
            rows.append((cell(t(title, language), classes="mark"), cell(_size(size)), cell("")))
    titles = ["common.project", "system.total", "system.breakdown"]
    shared = note(t("system.shared_files_hint", language))
    listed = table([t(title, language) for title in titles], rows)
    return listed + shared + _deletable_table(output, project_name, language)


def _row(name: str, use: DiskUsage, language: str) -> tuple[str, ...]:
    parts = [f"{t(title, language)} {_size(size)}" for part, title in PARTS.items() if (size := getattr(use, part))]
    return cell(name, classes="mark"), cell(_size(use.total)), cell(" · ".join(parts))


def _deletable_table(output: Path, project_name: str, language: str) -> str:
    found = deletable(output, project_name)
    rows = [(cell(t(KINDS[kind], language)), cell(_size(size))) for kind, size in found.items()]
    return table([t("system.free_up_space", language), t("system.size_disk", language)], rows)


def deletable(output: Path, project_name: str) -> dict[str, int]:
    """Return the bytes that can be deleted, by kind."""
    return disk_usage.reclaimable(project(project_name, output)) | {TRASH: disk_usage.size_of(output / projects.TRASH)}


def free(output: Path, project_name: str, kind: str) -> int:
    """Delete files of a kind permanently and return their size."""
    if kind != TRASH:
        return disk_usage.reclaim(project(project_name, output), kind)
    size = disk_usage.size_of(output / projects.TRASH)
    projects.empty_trash(output)
    return size


def _size(size: int) -> str:
    return f"{size / 1e9:,.2f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB" if size else "–"


def _connect_measure(page: PageContext, tab: gr.Tab, measure: gr.Button, kind: gr.Radio, shown: gr.HTML) -> None:
    @show_errors
    def show(project_name: str, language: str) -> str:
        return usage_tables(page.output, project_name, language)

    given = [page.project, page.language]
    measure.click(show, given, shown, api_name="disk_use", **RAW_INPUTS)
    gr.on(
        [tab.select, page.language.change],
        show,
        given,
        shown,
        api_visibility="private",
        show_progress="hidden",
        **RAW_INPUTS,
    )

    def translate_kinds(language: str) -> Any:  # noqa: ANN401  # gradio's updates have no type
        return gr.update(choices=[(t(words, language), name) for name, words in KINDS.items()])

    gr.on([page.blocks.load, page.language.change], translate_kinds, page.language, kind, **PRIVATE_EVENT)


def _connect_free(
    page: PageContext, kind: gr.Radio, button: tuple[gr.Button, gr.HTML], confirmation: Confirmation, shown: gr.HTML
) -> None:
    """Show the size before anything is deleted."""
    delete, _ = button

    @show_errors
    def available(chosen: str | None, project_name: str, language: str) -> tuple[Any, ...]:
        try:
            size = deletable(page.output, project_name).get(chosen or "", 0)
        except AmharicTtsError:  # an invalid name, shown where it was typed
            size = 0
        words = "" if size else t("system.nothing_to_free" if chosen else "system.choose_files", language)
        return gr.update(interactive=bool(size)), note(words)

    def ask(chosen: str, project_name: str, language: str) -> str:
        size = _size(deletable(page.output, project_name).get(chosen, 0))
        words = t("system.ask_delete_files", language, size=size)
        return f"{t(KINDS.get(chosen, ''), language)}: {words}"

    @show_errors
    def delete_files(chosen: str, project_name: str, language: str, asked: object) -> tuple[Any, ...]:
        refuse_other(asked, chosen, project_name)
        size = free(page.output, project_name, chosen or "")
        notify(t("system.freed", language, size=f"{size / 1e6:,.0f}"))
        return usage_tables(page.output, project_name, language), *available(chosen, project_name, language)

    subject = [kind, page.project]
    changes = [page.blocks.load, kind.change, page.project.change, page.language.change]
    gr.on(changes, available, [*subject, page.language], [*button], **RAW_INPUTS, **PRIVATE_EVENT)
    confirmation.connect(
        delete, subject, page.language, ask, delete_files, [shown, *button], api_name="free_space", **RAW_INPUTS
    )
