"""The steps from recordings to a voice, which are the tabs of the page, and how far each is."""

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


def render(project: Project | None, language: str) -> str:
    """Return the steps, without how far they are while no project is known."""
    found = [(name, read(project, language) if project else Step("", "")) for name, read in STEPS.items()]
    steps = [step._replace(tab=f"{name}-tab", title=t(f"{name}.tab", language)) for name, step in found]
    return html("page.html", "steps", steps)


def next_button(tab: str, title: str, language: str) -> str:
    """Return the button that leads to the next step."""
    return html("page.html", "next", tab, t(title, language))


def _data(project: Project, language: str) -> Step:
    if step := _active(project, "prepare", language):
        return step
    store = Store(project.dataset)
    kept = store.totals()["kept"] if store.exists else None
    run = next(iter(runs.list_runs(project, "prepare")), None)
    if kept and kept.clips:
        return Step("", "", "done", t("steps.clips", language, count=kept.clips))
    if run and run.current_state().status == "failed":
        return Step("", "", "failed", t("status.failed", language))
    return Step("", "")


def _training(project: Project, language: str) -> Step:
    if step := _active(project, "train", language):
        return step
    run = next(iter(runs.list_runs(project, "train")), None)
    status = run.current_state().status if run else None
    state = {"finished": "done", "failed": "failed"}.get(status, "open") if status else "open"
    text = t(f"status.{status}", language) if status else ""
    return Step("", "", state, "" if state == "done" else text, None, text)


def _speech(project: Project, _: str) -> Step:
    return Step("", "", "done" if (project.ready / MODEL_FILE).is_file() else "open")


STEPS = {"data": _data, "training": _training, "inference": _speech}


def _active(project: Project, kind: str, language: str) -> Step | None:
    """Return how far the active run of a kind is, if there is one."""
    run = runs.active_run(project, kind)
    if run is None:
        return None
    text, percent = progress.brief(run, run.current_state(), language)
    return Step("", "", "active", text, percent)
