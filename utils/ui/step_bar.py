"""The steps from recordings to a voice, which are the tabs of the page, and how far each is."""

from collections.abc import Callable
from typing import NamedTuple

from utils.dataset.store import Store
from utils.studio import runs
from utils.studio.paths import Project
from utils.ui import progress
from utils.ui.html import html
from utils.ui.i18n import t
from utils.ui.views import attributes
from utils.xtts.files import MODEL_FILE


class Step(NamedTuple):
    """How far a step of the way is."""

    state: str = "open"  # or done, active, failed
    text: str = ""
    percent: float | None = None  # of the active run
    status: str = ""  # of the newest run, for a notification


def render(project: Project | None) -> str:
    """Return the steps, without how far they are while no project is known."""
    steps = {name: _step(project, *step) if project else Step() for name, step in STEPS.items()}
    return html("page.html", "steps", steps)


def _step(project: Project, kind: str, read: Callable[[Project], Step]) -> Step:
    """Return how far the active run of a kind is; without one, what ``read`` says."""
    run = runs.active_run(project, kind) if kind else None
    return Step("active", *progress.brief(run, run.current_state())) if run else read(project)


def next_button(tab: str, title: str) -> str:
    """Return the button that leads to the next step."""
    return html("views.html", "button", attributes(data_open=tab), "next", f"{t(title)} →")


def _data(project: Project) -> Step:
    store = Store(project.dataset)
    kept = store.totals()["kept"] if store.exists else None
    if kept and kept.clips:
        return Step("done", t("steps.clips", count=kept.clips))
    is_failed = _newest_status(project, "prepare") == "failed"
    return Step("failed", t("status.failed")) if is_failed else Step()


def _training(project: Project) -> Step:
    status = _newest_status(project, "train")
    if not status:
        return Step()
    text = t(f"status.{status}")
    if status == "finished":
        return Step("done", status=text)
    return Step("failed" if status == "failed" else "open", text, status=text)


def _speech(project: Project) -> Step:
    return Step("done" if (project.ready / MODEL_FILE).is_file() else "open")


def _newest_status(project: Project, kind: str) -> str:
    run = runs.newest_run(project, kind)
    return run.current_state().status if run else ""


STEPS = {"data": ("prepare", _data), "training": ("train", _training), "inference": ("", _speech)}
