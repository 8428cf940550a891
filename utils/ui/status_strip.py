"""The status strip: the three steps from recordings to a voice, how far each is, and a click to go there."""

from html import escape
from typing import NamedTuple

from utils.core.events import as_number
from utils.dataset.store import Store
from utils.studio import runs
from utils.studio.paths import Project
from utils.studio.runs import Run, Status
from utils.ui import views
from utils.ui.i18n import t
from utils.ui.tabs.data.render import minutes
from utils.xtts.files import MODEL_FILE

SIGNS = {"done": "✓", "active": "●", "open": "○", "failed": "✗"}


class Step(NamedTuple):
    """A step of the way."""

    tab: str  # its elem_id
    title: str  # id of the phrase
    state: str  # a key of SIGNS
    text: str


def render(project: Project, language: str) -> str:
    steps = (_data(project, language), _training(project, language), _speech(project, language))
    buttons = (
        f'<button type="button" class="{step.state}" data-open="{step.tab}">{SIGNS[step.state]} '
        f"<b>{escape(t(step.title, language))}</b> {escape(step.text)}</button>"
        for step in steps
    )
    return f'<nav class="strip">{"<span>→</span>".join(buttons)}</nav>'


def next_button(tab: str, title: str, language: str) -> str:
    """Return the button that leads to the next step."""
    return f'<button type="button" class="next" data-open="{tab}">{escape(t(title, language))} →</button>'


def _data(project: Project, language: str) -> Step:
    if run := runs.active_run(project, "prepare"):
        return Step("data-tab", "data.tab", "active", _progress(run, language))
    store = Store(project.dataset)
    kept = store.totals()["kept"] if store.exists else None
    if not kept or not kept.clips:
        return Step("data-tab", "data.tab", "open", t("strip.no_clips", language))
    text = t("strip.clips", language, count=kept.clips, time=minutes(kept.seconds, language))
    return Step("data-tab", "data.tab", "done", text)


def _training(project: Project, language: str) -> Step:
    if run := runs.active_run(project, "train"):
        return Step("training-tab", "strip.train", "active", _progress(run, language))
    run = next(iter(runs.list_runs(project, "train")), None)
    status = run.current_state().status if run else None
    state = "done" if status is Status.FINISHED else "failed" if status is Status.FAILED else "open"
    text = t(f"status.{status}" if status else "strip.not_started", language)
    return Step("training-tab", "strip.train", state, text)


def _speech(project: Project, language: str) -> Step:
    is_ready = (project.ready / MODEL_FILE).is_file()
    text = t("strip.ready" if is_ready else "strip.base_voice", language)
    return Step("inference-tab", "strip.speak", "done" if is_ready else "open", text)


def _progress(run: Run, language: str) -> str:
    event = next((event for event in reversed(views.newest_events(run)) if event["kind"] == "progress"), {})
    percent, step, total = (as_number(event.get(name)) for name in ("percent", "step", "total"))
    if percent is None and step is not None and total:
        percent = 100 * step / total
    parts = ["" if percent is None else f"{percent:.0f} %", views.time_left(event.get("seconds_left"), language)]
    return " · ".join(filter(None, parts)) or t("status.running", language)
