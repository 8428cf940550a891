"""The steps from recordings to a voice, which are the tabs of the page, and how far each is."""

from collections.abc import Callable
from typing import NamedTuple

from utils.dataset.store import Store
from utils.studio import runs
from utils.studio.paths import Project
from utils.ui import progress
from utils.ui.html import html
from utils.ui.i18n import t
from utils.xtts.files import MODEL_FILE


class Step(NamedTuple):
    """A step of the way."""

    tab: str  # its elem_id
    title: str
    state: str = "open"  # or done, active, failed
    text: str = ""
    percent: float | None = None  # of the active run
    status: str = ""  # of the newest run, for a notification


def render(project: Project | None) -> str:
    """Return the steps, without how far they are while no project is known."""
    found = [(name, read(project) if project else Step("", "")) for name, read in STEPS.items()]
    steps = [step._replace(tab=f"{name}-tab", title=t(f"{name}.tab")) for name, step in found]
    return html("page.html", "steps", steps)


def next_button(tab: str, title: str) -> str:
    """Return the button that leads to the next step."""
    return html("page.html", "next", tab, t(title))


def _data(project: Project) -> Step:
    if step := _active(project, "prepare"):
        return step
    store = Store(project.dataset)
    kept = store.totals()["kept"] if store.exists else None
    run = next(iter(runs.list_runs(project, "prepare")), None)
    if kept and kept.clips:
        return Step("", "", "done", t("steps.clips", count=kept.clips))
    if run and run.current_state().status == "failed":
        return Step("", "", "failed", t("status.failed"))
    return Step("", "")


def _training(project: Project) -> Step:
    if step := _active(project, "train"):
        return step
    run = next(iter(runs.list_runs(project, "train")), None)
    status = run.current_state().status if run else None
    state = {"finished": "done", "failed": "failed"}.get(status, "open") if status else "open"
    text = t(f"status.{status}") if status else ""
    return Step("", "", state, "" if state == "done" else text, None, text)


def _speech(project: Project) -> Step:
    return Step("", "", "done" if (project.ready / MODEL_FILE).is_file() else "open")


STEPS: dict[str, Callable[[Project], Step]] = {"data": _data, "training": _training, "inference": _speech}


def _active(project: Project, kind: str) -> Step | None:
    """Return how far the active run of a kind is, if there is one."""
    run = runs.active_run(project, kind)
    if run is None:
        return None
    text, percent = progress.brief(run, run.current_state())
    return Step("", "", "active", text, percent)
