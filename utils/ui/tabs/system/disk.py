"""The disk usage of the projects, and a way to free space without losing work."""

from pathlib import Path
from typing import Any

import gradio as gr

from utils.core import paths
from utils.core.errors import AmharicTtsError
from utils.core.paths import list_projects, project
from utils.ui.i18n import choices, labels, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, build_confirmation, notify, refuse_other, show_errors
from utils.ui.views import cell, note, table
from utils.workspace import disk_usage, projects

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


def build_disk(page: PageContext, opened: gr.Button) -> None:
    """Lay out the table, the files that can be deleted, and the confirmation."""
    measure = gr.Button(t("system.measure"), elem_id="measure-disk", min_width=130)
    usage = gr.HTML(elem_id="disk-use")
    kind = gr.Radio(choices(KINDS), interactive=True, elem_id="spare-kind", **labels("system.free_up_space"))
    delete = gr.Button(t("system.delete_files"), variant="stop", visible=False, min_width=150, elem_id="free-space")
    reason = gr.HTML(elem_id="free-reason")
    confirmation = build_confirmation("free-question", "system.confirm_delete_files", "system.cancel_delete_files")

    @show_errors
    def show(project_name: str, language: str) -> str:
        return usage_tables(page.output, project_name, language)

    @show_errors
    def available(chosen: str | None, project_name: str, language: str) -> tuple[Any, ...]:
        try:
            size = deletable(page.output, project_name).get(chosen or "", 0)
        except AmharicTtsError:  # an invalid name, shown where it was typed
            size = 0
        obstacle = t("system.nothing_to_free", language) if chosen and not size else ""
        return gr.update(visible=bool(size)), note(obstacle)

    def ask(chosen: str, project_name: str, language: str) -> str:
        size = _size(deletable(page.output, project_name).get(chosen, 0))
        return f"{t(KINDS.get(chosen, ''), language)}: {t('system.ask_delete_files', language, size=size)}"

    @show_errors
    def delete_files(chosen: str, project_name: str, language: str, asked: object) -> tuple[Any, ...]:
        refuse_other(asked, chosen, project_name)
        size = free(page.output, project_name, chosen)
        notify(t("system.freed", language, size=f"{size / 1e6:,.0f}"))
        return usage_tables(page.output, project_name, language), *available(chosen, project_name, language)

    inputs, subject = [page.project, page.language], [kind, page.project]
    options: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden", **RAW_INPUTS}
    measure.click(show, inputs, usage, api_name="disk_use", **RAW_INPUTS)
    gr.on([opened.click, page.language.change], show, inputs, usage, **options)
    changes = [page.blocks.load, kind.change, page.project.change, page.language.change]
    gr.on(changes, available, [*subject, page.language], [delete, reason], **RAW_INPUTS, **PRIVATE_EVENT)
    outputs, options = [usage, delete, reason], {"api_name": "free_space", **RAW_INPUTS}
    confirmation.connect(delete, subject, page.language, ask, delete_files, outputs, **options)


def usage_tables(output: Path, project_name: str, language: str) -> str:
    """Return the size of every project, and what can be deleted."""
    rows = []
    for name in list_projects(output):
        usage = disk_usage.measure(project(name, output))
        parts = [f"{t(key, language)} {_size(size)}" for part, key in PARTS.items() if (size := getattr(usage, part))]
        rows.append((cell(name, classes="mark"), cell(_size(usage.total)), cell(" · ".join(parts))))
    for title, folder in (("common.deleted_projects", output / projects.TRASH), ("system.base_models", paths.MODELS)):
        if size := disk_usage.size_of(folder):
            rows.append((cell(t(title, language), classes="mark"), cell(_size(size)), cell("")))
    used = table([t(key, language) for key in ("common.project", "system.total", "system.breakdown")], rows)
    spare = [
        (cell(t(KINDS[kind], language)), cell(_size(size))) for kind, size in deletable(output, project_name).items()
    ]
    titles = [t(key, language) for key in ("system.free_up_space", "system.size_disk")]
    return used + note(t("system.shared_files_hint", language)) + table(titles, spare)


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
