"""The disk usage of the projects, and a way to free space without losing work."""

from pathlib import Path

from utils.core.wording import LANGUAGE
from utils.studio import disk_usage, paths, projects
from utils.studio.paths import list_projects, project
from utils.ui import views
from utils.ui.i18n import t
from utils.ui.page import PageContext, Panel, PanelRequest, notify
from utils.ui.views import cell, gigabytes, note, table

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


def build_disk(page: PageContext) -> None:
    """Lay out the table on request, because measuring reads every file; each kind of files has its button."""

    def measure(request: PanelRequest) -> dict[str, str]:
        return {"usage": usage_tables(page.output, request.name), "written_in": LANGUAGE.get()}

    def delete(request: PanelRequest) -> dict[str, str]:
        size = free(page.output, request.text("project"), request.text("kind"))
        notify("system.freed", size=f"{size / 1e6:,.0f}")
        return measure(request)

    def render(request: PanelRequest) -> str:
        usage = request.text("usage") if request.text("written_in") == LANGUAGE.get() else ""
        return views.row(views.button("measure", "system.measure")) + usage

    Panel(page, "disk-use", render, {"measure": measure, "delete": delete})


def usage_tables(output: Path, project_name: str) -> str:
    """Return the size of every project, and what can be deleted."""
    spare = disk_usage.reclaimable(project(project_name, output))
    spare |= {TRASH: disk_usage.size_of(output / projects.TRASH)}
    rows = [(KINDS[kind], gigabytes(size), _delete_cell(kind, size, project_name)) for kind, size in spare.items()]
    titles = ("system.free_up_space", "system.size_disk", "common.actions")
    return _used(output) + note("system.shared_files_hint") + note("system.free_up_space_hint") + table(titles, rows)


def _used(output: Path) -> str:
    """Return the size of every project, of what was deleted and of the base models."""
    rows = list[tuple[str, str, str]]()
    for name in list_projects(output):
        usage = disk_usage.measure(project(name, output))
        parts = (f"{t(key)} {gigabytes(size)}" for part, key in PARTS.items() if (size := getattr(usage, part)))
        rows.append((cell(name, classes="mark"), gigabytes(usage.total), views.joined(*parts)))
    for title, folder in (("common.deleted_projects", output / projects.TRASH), ("system.base_models", paths.MODELS)):
        if size := disk_usage.size_of(folder):
            rows.append((cell(title, classes="mark"), gigabytes(size), ""))
    return table(("common.project", "system.total", "system.breakdown"), rows)


def _delete_cell(kind: str, size: int, project_name: str) -> str:
    if not size:
        return ""
    question = f"{t(KINDS[kind])}: {t('system.ask_delete_files', size=gigabytes(size))}"
    button = views.button("delete", "common.delete", "stop", kind=kind, project=project_name, confirm=question)
    return views.html_cell(button)


def free(output: Path, project_name: str, kind: str) -> int:
    """Delete files of a kind permanently and return their size."""
    if kind != TRASH:
        return disk_usage.reclaim(project(project_name, output), kind)
    size = disk_usage.size_of(output / projects.TRASH)
    projects.empty_trash(output)
    return size
