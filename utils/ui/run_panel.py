"""The runs of the open project: list, state, log, and buttons for the selected run."""

from collections.abc import Callable
from typing import Any

import gradio as gr

from utils import runs
from utils.core.errors import AmharicTtsError
from utils.core.events import read_tail
from utils.core.paths import Project
from utils.ui import views
from utils.ui.i18n import describe_error, labels, t
from utils.ui.page import (
    QUIET_EVENT,
    RAW_INPUTS,
    Confirmation,
    PageContext,
    build_confirmation,
    notify,
    refuse_other,
    show_errors,
)


class RunPanel:
    """The panel, laid out and connected; ``name`` is the prefix of its ids and of the names of its events."""

    def __init__(
        self,
        page: PageContext,
        name: str = "",
        list_runs: Callable[[Project], list[runs.Run]] = runs.list_runs,
        render_facts: Callable[[runs.Run, runs.State, str], str] = views.run_facts,
        read_log: Callable[[runs.Run], str] = lambda run: read_tail(run.log),
        ask_stop: Callable[[runs.Run, str], str] = lambda run, language: t("runs.ask_stop", language, name=run.name),
    ) -> None:
        self.page, self.list_runs, self.render_facts, self.read_log = page, list_runs, render_facts, read_log
        self.ask_stop = ask_stop
        ids = f"{name}-" if name else ""

        def button(elem_id: str, key: str, variant: Any = "secondary") -> gr.Button:  # noqa: ANN401  # gradio's literal
            return gr.Button(t(key), variant=variant, elem_id=f"{ids}{elem_id}", visible=False, min_width=120, scale=0)

        with gr.Column(visible=False) as box:
            with gr.Row():
                with gr.Column(scale=3, min_width=280):
                    self.facts = gr.HTML(elem_id=f"{ids}run-facts")
                    with gr.Row():
                        stop_and_save = button("stop-and-save", "common.stop_and_save")
                        stop_now = button("stop-now", "common.stop_now", variant="stop")
                        resume = button("resume", "common.resume", variant="primary")
                        delete = button("delete", "common.delete")
                    deletion = build_confirmation(f"{ids}run-question", "runs.confirm_delete", "runs.cancel_delete")
                    stop = build_confirmation(f"{ids}stop-question", "runs.confirm_stop", "runs.cancel_stop")
                with gr.Column(scale=2, min_width=240):
                    options: dict[str, Any] = {"elem_classes": "long-list", "interactive": True}
                    self.chosen = gr.Radio([], label=t("runs.run"), elem_id=f"{ids}runs", **options)
            with gr.Accordion(t("runs.log"), open=False, elem_id=f"{ids}log"):
                options = {"elem_id": f"{ids}run-log", "placeholder": t("runs.log_empty")}
                log = gr.Textbox(label=t("runs.log"), lines=12, max_lines=12, interactive=False, **options)
        self.inputs: list[Any] = [page.project, self.chosen, page.language]  # what every handler reads
        self.outputs: list[Any] = [box, self.chosen, self.facts, log, stop_and_save, stop_now, resume, delete]
        self._connect(f"{name}_" if name else "", stop, deletion)

    def _connect(self, prefix: str, stop: Confirmation, deletion: Confirmation) -> None:
        page = self.page
        stop_and_save, stop_now, resume, delete = self.outputs[-4:]
        frame: dict[str, Any] = {"inputs": self.inputs, "outputs": self.outputs, **RAW_INPUTS}
        events = [*page.refresh, self.chosen.input]
        gr.on(events, show_errors(self.show), api_name=f"{prefix}show_run", **frame, **QUIET_EVENT)
        # Progress is shown on one widget alone: each costs time at every event.
        for button, action, phrase, event in (
            (stop_and_save, runs.stop_and_save, "runs.stopping", "stop_and_save"),
            (resume, runs.resume, "runs.started", "resume_run"),
        ):
            options = {"api_name": f"{prefix}{event}", "concurrency_limit": None, "show_progress_on": self.facts}
            button.click(self._handler(action, phrase), **frame, **options)

        def ask_stop(project: str, run: str, language: str) -> str:
            return self.ask_stop(runs.find_run(page.open(project), run), language)

        def ask_delete(_: str, run: str, language: str) -> str:
            return t("runs.ask_delete", language, name=run)

        subject, options = [page.project, self.chosen], {"show_progress_on": self.facts, **RAW_INPUTS}
        act = self._handler(runs.stop_now, "runs.stopped")
        options["api_name"] = f"{prefix}stop_now"
        stop.connect(stop_now, subject, page.language, ask_stop, act, self.outputs, **options)
        act = self._handler(runs.delete, "runs.deleted")
        options["api_name"] = f"{prefix}delete_run"
        deletion.connect(delete, subject, page.language, ask_delete, act, self.outputs, **options)

    def show(self, project: str, run: str | None, language: str) -> tuple[Any, ...]:
        """Read the runs from disk; called on every tick, so an invalid project shows nothing here."""
        try:
            listed = self.list_runs(self.page.open(project))
        except AmharicTtsError:
            listed = []
        chosen = next((item for item in listed if item.name == run), listed[0] if listed else None)
        choices = gr.update(choices=views.run_choices(listed, language))
        if chosen is None or chosen.name != run:  # else leave the selection alone: the visitor may be changing it
            choices["value"] = chosen.name if chosen else None
        return gr.update(visible=bool(listed)), choices, *self._details(chosen, language)

    def _details(self, chosen: runs.Run | None, language: str) -> tuple[Any, ...]:
        if chosen is None:
            return "", "", *[gr.update(visible=False)] * 4
        state = chosen.current_state()
        try:
            facts, log = self.render_facts(chosen, state, language), self.read_log(chosen)
        except AmharicTtsError as error:  # a damaged file of one run; it can still be deleted
            facts, log = views.note(describe_error(error, language)), ""
        return facts, log, *(gr.update(visible=can_act) for can_act in views.run_actions(state.status))

    def _handler(self, action: Callable[[runs.Run], object], phrase: str) -> Callable[..., tuple[Any, ...]]:
        """Return a handler that acts on the selected run, says so, and shows the result."""

        @show_errors
        def act(project: str, run: str | None, language: str, asked: object = None) -> tuple[Any, ...]:
            refuse_other(asked, project, run)
            selected = runs.find_run(self.page.open(project), run)
            action(selected)
            notify(t(phrase, language, name=selected.name))
            return self.show(project, run, language)

        return act

    def started(self, start: Callable[[Project], runs.Run], project: str, language: str) -> tuple[Any, ...]:
        """Start a run, say so, and show it as the selected one."""
        run = start(self.page.open(project))
        notify(t("runs.started", language, name=run.name))
        box, choices, *details = self.show(project, run.name, language)
        return box, choices | {"value": run.name}, *details


def command_box(elem_id: str, *, visible: bool = True) -> gr.Textbox:
    return gr.Textbox(
        **labels("runs.command"),
        lines=2,
        max_lines=8,
        buttons=["copy"],
        interactive=False,
        visible=visible,
        elem_id=elem_id,
    )
