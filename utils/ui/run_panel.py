"""The runs of the open project: list, state, log, and buttons for the selected run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from utils import runs
from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.ui import views
from utils.ui.i18n import describe_error, t
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

ListRuns = Callable[[Project], list[runs.Run]]
RenderFacts = Callable[[runs.Run, runs.State, str], str]
ReadLog = Callable[[runs.Run], str]


@dataclass(frozen=True)
class RunPanel:
    """The widgets of the panel, and how its runs are listed and shown."""

    page: PageContext
    chosen: gr.Radio
    facts: gr.HTML
    log: gr.Textbox
    stop_and_save: gr.Button
    stop_now: gr.Button
    resume: gr.Button
    delete: gr.Button
    reasons: gr.HTML
    confirmation: Confirmation
    list_runs: ListRuns = runs.list_runs
    render_facts: RenderFacts = views.run_facts
    read_log: ReadLog = views.log_tail

    @property
    def inputs(self) -> list[Any]:
        """Return what every handler reads: project, run, language."""
        return [self.page.project, self.chosen, self.page.language]

    @property
    def outputs(self) -> list[Any]:
        """Return what ``show`` fills, in its order."""
        buttons = [self.stop_and_save, self.stop_now, self.resume, self.delete]
        return [self.chosen, self.facts, self.log, self.reasons, *buttons]

    def show(self, project: str, run: str | None, language: str) -> tuple[Any, ...]:
        """Read the runs from disk; called on every tick, so an error is shown in the panel."""
        try:
            found = self.list_runs(self.page.open(project))
            chosen = next((item for item in found if item.name == run), found[0] if found else None)
            choices = gr.update(choices=views.run_choices(found, language))
            if chosen is None or chosen.name != run:  # else leave the selection alone: the visitor may be changing it
                choices["value"] = chosen.name if chosen else None
            return choices, *self._details(chosen, language)
        except AmharicTtsError as error:
            nothing = [gr.update(interactive=False)] * 4
            return gr.update(choices=[], value=None), views.note(describe_error(error, language)), "", "", *nothing

    def _details(self, chosen: runs.Run | None, language: str) -> tuple[Any, ...]:
        if chosen is None:
            facts, log, actions = views.note(t("runs.none_yet", language)), "", views.NO_RUN_CHOSEN
        else:
            state = chosen.current_state()
            try:
                facts, log = self.render_facts(chosen, state, language), self.read_log(chosen)
            except AmharicTtsError as error:  # a damaged file of one run; it can still be deleted
                facts, log = views.note(describe_error(error, language)), ""
            actions = views.RUN_ACTIONS[state.status]
        buttons = [gr.update(interactive=not reason) for reason in actions.by_label.values()]
        return facts, log, views.disabled_reasons(actions.by_label, language), *buttons

    def act(self, action: Callable[[runs.Run], object], phrase: str) -> Callable[..., tuple[Any, ...]]:
        """Return a handler that acts on the selected run, says so, and shows the result."""

        @show_errors
        def acted(project: str, run: str | None, language: str, asked: object = None) -> tuple[Any, ...]:
            refuse_other(asked, project, run)
            found = runs.find_run(self.page.open(project), run)
            action(found)
            notify(t(phrase, language, name=found.name))
            return self.show(project, run, language)

        return acted

    def started(self, start: Callable[[Project], runs.Run], project: str, language: str) -> tuple[Any, ...]:
        """Start a run, say so, and show it as the selected one."""
        run = start(self.page.open(project))
        notify(t("runs.started", language, name=run.name))
        choices, *details = self.show(project, run.name, language)
        return choices | {"value": run.name}, *details


def build_run_panel(
    page: PageContext,
    name: str = "",
    list_runs: ListRuns = runs.list_runs,
    render_facts: RenderFacts = views.run_facts,
    read_log: ReadLog = views.log_tail,
) -> RunPanel:
    """Lay out the panel and connect it.

    Args:
        page: The frame around it.
        name: Prefix of the ids of its elements and the names of its events.
        list_runs: Lists the runs of the panel.
        render_facts: Shows what a run is doing, as HTML.
        read_log: Returns the end of a run's log.
    """
    ids = f"{name}-" if name else ""
    with gr.Row():
        with gr.Column(scale=2, min_width=280):
            chosen = gr.Radio([], label=t("runs.run"), elem_id=f"{ids}runs", elem_classes="long-list", interactive=True)
            facts = gr.HTML(elem_id=f"{ids}run-facts")
            with gr.Row():
                stop_and_save = _button(f"{ids}stop-and-save", "common.stop_and_save")
                stop_now = _button(f"{ids}stop-now", "common.stop_now", variant="stop")
                resume = _button(f"{ids}resume", "common.resume")
                delete = _button(f"{ids}delete", "common.delete")
            reasons = gr.HTML(elem_id=f"{ids}run-reasons")
            confirmation = build_confirmation(f"{ids}run-question", "runs.confirm_delete", "runs.cancel_delete")
        with gr.Column(scale=3, min_width=280):
            log = gr.Textbox(
                label=t("runs.log"),
                lines=12,
                max_lines=12,
                interactive=False,
                elem_id=f"{ids}run-log",
                placeholder=t("runs.log_empty"),
            )
    panel = RunPanel(
        page,
        chosen,
        facts,
        log,
        stop_and_save,
        stop_now,
        resume,
        delete,
        reasons,
        confirmation,
        list_runs,
        render_facts,
        read_log,
    )
    _connect(panel, f"{name}_" if name else "")
    return panel


def _button(elem_id: str, key: str, variant: Any = "secondary") -> gr.Button:  # noqa: ANN401  # gradio's literal
    return gr.Button(t(key), variant=variant, elem_id=elem_id, interactive=False, min_width=150)


def command_box(elem_id: str, *, visible: bool = True) -> gr.Textbox:
    """Return a box for the equivalent command."""
    return gr.Textbox(
        label=t("runs.command"),
        info=t("runs.command_hint"),
        lines=2,
        max_lines=8,
        buttons=["copy"],
        interactive=False,
        visible=visible,
        elem_id=elem_id,
    )


def _connect(panel: RunPanel, prefix: str) -> None:
    clicked = RAW_INPUTS | {"show_progress_on": panel.facts}  # one status widget: each costs time at every event
    gr.on(
        [*panel.page.refresh, panel.chosen.input],
        show_errors(panel.show),
        panel.inputs,
        panel.outputs,
        api_name=f"{prefix}show_run",
        **RAW_INPUTS,
        **QUIET_EVENT,
    )
    for button, action, phrase, name in (
        (panel.stop_and_save, runs.stop_and_save, "runs.stopping", "stop_and_save"),
        (panel.stop_now, runs.stop_now, "runs.stopped", "stop_now"),
        (panel.resume, runs.resume, "runs.started", "resume_run"),
    ):
        handler = panel.act(action, phrase)
        button.click(
            handler, panel.inputs, panel.outputs, api_name=f"{prefix}{name}", concurrency_limit=None, **clicked
        )
    *subject, language = panel.inputs
    panel.confirmation.connect(
        panel.delete,
        subject,
        language,
        lambda _, run, language: t("runs.ask_delete", language, name=run),
        panel.act(runs.delete, "runs.deleted"),
        panel.outputs,
        api_name=f"{prefix}delete_run",
        **clicked,
    )
