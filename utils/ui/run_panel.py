"""The runs of the open project: list, state, log, notes, and buttons for the selected run; and commands."""

import time
from collections.abc import Callable, Sequence
from typing import Any

import gradio as gr

from utils.core.errors import AmharicTtsError
from utils.core.events import read_tail
from utils.core.wording import describe
from utils.studio import command_runs, runs
from utils.studio.paths import Project
from utils.studio.run_state import State
from utils.ui import progress, views
from utils.ui.i18n import describe_error, t
from utils.ui.page import Action, PageContext, Panel, PanelRequest, notify
from utils.ui.settings_form import Values


class RunPanel:
    """The panel, laid out and connected; ``name`` is the prefix of its ids."""

    def __init__(
        self,
        page: PageContext,
        name: str = "",
        verbs: Sequence[str] = (),  # of the runs that are listed; all without any
        render_facts: Callable[[runs.Run, State], str] = progress.facts,
        outputs: Sequence[Any] = (),  # of the actions of a subclass
    ) -> None:
        self.page = page
        self.verbs = verbs
        self.render_facts = render_facts
        self.ids = f"{name}-" if name else ""
        self.chosen = gr.State("")  # name of the selected run
        self.inputs = [page.project, self.chosen]  # what a handler of a run reads
        Panel(page, f"{self.ids}runs", self.render, self.actions, [self.chosen, *outputs], {"run": self.chosen})

    @property
    def actions(self) -> dict[str, Action]:
        """Return the actions of the panel."""
        return {
            "choose": lambda request: {self.chosen: request.text("run")},
            "note": _write_note,
            "use_stored": lambda request: {"noteBase": None, "kept": str(request.turn)},
            "stop_and_save": lambda request: _stop(request, now=False),
            "stop_now": lambda request: _stop(request, now=True),
            "resume": self._action(runs.resume, "runs.started"),
            "delete": self._action(runs.delete, "runs.deleted"),
        }

    def ask_stop(self, run: runs.Run) -> str:
        return t("runs.ask_stop", name=views.run_title(run))

    def waiting(self, request: PanelRequest) -> str:  # noqa: ARG002  # of subclasses
        """Return what is shown without any run."""
        return ""

    def more(self, run: runs.Run, request: PanelRequest) -> str:  # noqa: ARG002  # of subclasses
        """Return what the run made."""
        return ""

    def _action(self, act: Callable[[runs.Run], object], phrase: str) -> Action:
        def action(request: PanelRequest) -> None:
            run = find(request)
            title = views.run_title(run)
            act(run)
            notify(phrase, name=title)

        return action

    def selected(self, project: Project, name: object) -> runs.Run | None:
        """Return the run of a name, else the active one, else the newest."""

        def rank(run: runs.Run) -> tuple[bool, bool]:
            return run.name == name, run.current_state().status in runs.ACTIVE

        return max(runs.list_runs(project, *self.verbs), key=rank, default=None)  # the newest comes first

    def render(self, request: PanelRequest) -> str:
        """Read the runs from disk; called on every tick."""
        run = self.selected(request.project, request.text("run"))
        if run is None:
            return self.waiting(request)
        state = run.current_state()
        try:
            facts, log = self.render_facts(run, state), views.log(run)
        except AmharicTtsError as error:  # a damaged file of one run; it can still be deleted
            facts, log = views.note(describe_error(error)), ""
        head = views.element("div", facts, id=f"{self.ids}run-facts")
        actions = views.row(self._chooser(run), *self._buttons(run, state.status))
        log = views.code(log or t("runs.log_empty"), "log")
        details = views.details("runs.log_and_note", _note_field(run, request) + log, f"{self.ids}log")
        return head + self.more(run, request) + actions + details

    def _chooser(self, run: runs.Run) -> str:
        """Return the choice of another run, if there is one."""
        choices = [
            (f"{views.run_title(listed)} · {t(f'status.{listed.current_state().status}')}", listed.name)
            for listed in runs.list_runs(run.project, *self.verbs)
        ]
        if len(choices) < 2:
            return ""
        return views.select_field("run", "runs.run", choices, chosen=run.name, data_act="choose")

    def _buttons(self, run: runs.Run, status: runs.Status) -> list[str]:
        """Return what can be done with a run; each button names it, because another may be selected meanwhile."""
        title = views.run_title(run)
        questions = {"stop_now": self.ask_stop(run), "delete": t("runs.ask_delete", name=title)}
        styles = {"stop_now": "stop", "resume": "primary", "delete": "quiet"}
        return [
            views.button(act, f"common.{act}", styles.get(act, ""), run=run.name, confirm=questions.get(act))
            for act in views.run_actions(status)
        ]

    def connect_start(
        self,
        button: gr.Button,
        form: gr.HTML,
        message: gr.HTML,
        start: Callable[[Project, Values], runs.Start],
        describe_error: Callable[[AmharicTtsError], str],
    ) -> None:
        """Start a run with the settings of a form and select it unless it waits; show problems beside the button."""

        def act(project: str, settings: Values) -> tuple[Any, str]:
            try:
                run, outcome, _ = start(self.page.open(project), settings)
            except AmharicTtsError as error:
                return gr.skip(), describe_error(error)
            notify(f"runs.{outcome}", name=views.run_title(run))
            return gr.skip() if outcome == "queued" else run.name, ""

        self.page.on(
            button.click,
            act,
            [self.page.project, form],
            [self.chosen, message],
            api_name=button.elem_id,
            show_progress="hidden",
            concurrency_limit=None,
        )


def _note_field(run: runs.Run, request: PanelRequest) -> str:
    """Return the note of a run to edit, and a question if it was changed elsewhere meanwhile."""
    key = f"{run.name} {request.text('kept')}"
    shown = views.text_area(
        "note", "runs.note", "runs.note_hint", run.note, key, data_act="note", data_run=run.name, data_of=run.name
    )
    if request.text("of") == run.name and request.is_overtaken("note", run.note):
        shown += views.conflict("note", run.note, "note", run=run.name)
    return shown


def _write_note(request: PanelRequest) -> None:
    run = find(request)
    if request.is_edited("note", run.note) and not request.is_overtaken("note", run.note):
        runs.write_note(run, request.text("note"), request.typed_on("note"))
        request.note_saved("note", run.note)


def _stop(request: PanelRequest, *, now: bool) -> None:
    """Stop a run, and say what it will do or how it has ended."""
    run = find(request)
    state = runs.stop(run, now=now)
    phrase = "stopping" if state is None else "stopped" if state.status == "stopped" else "ended"
    notify(f"runs.{phrase}", name=views.run_title(run), status=t(f"status.{state.status}") if state else "")


def find(request: PanelRequest) -> runs.Run:
    return runs.find_run(request.project, request.fields.get("run"))


def working(sentence: str, seconds: float, done: int = 0, total: int = 0) -> str:
    """Show how far something is, with a button that stops it."""
    shown = views.timed_progress(sentence, seconds, done, total)
    return shown + views.row(views.button("stop", "inference.stop", "stop"))


def command_status(kind: str, request: PanelRequest, done: str = "", *, shows_log: bool = False) -> str:
    """Show how far the newest run of a command is, or how it ended.

    ``done`` is said of a finished one, else its output, which ``shows_log`` also shows below.
    """
    run = command_runs.newest(kind, request.project)
    if run is None:
        return ""
    state = run.current_state()
    if state.status in runs.UNFINISHED:
        now = views.newest_progress(run)
        sentence = describe(now) if now.total else t("inference.getting_ready")
        return working(sentence, time.time() - state.created, now.step, now.total)
    output = views.code(read_tail(run.log), "log") if shows_log else ""
    if state.status == "finished":
        return views.message_box("success", done or read_tail(run.log).strip()) + output
    if state.status == "stopped":
        return views.message_box("warning", "inference.stopped")
    return views.message_box("error", state.reason()) + output


def stop_action(kind: str) -> dict[str, Action]:
    """Return the action of the button in ``command_status``."""
    return {"stop": lambda request: command_runs.stop(kind, request.project)}


def in_project(request: PanelRequest) -> list[str]:
    """Return the flags that name the open project."""
    return ["--project", request.name, "--output", str(request.page.output)]
