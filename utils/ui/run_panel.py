"""Runs of the open project: list, state, log, and the buttons that act on the one that is chosen."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from utils import runs
from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.ui import error_text, views
from utils.ui.confirm import Question, build_question, refuse_another
from utils.ui.i18n import t
from utils.ui.page import QUIET_EVENT, RAW_INPUTS, PageContext, notify, show_errors


@dataclass(frozen=True)
class RunPanel:
    """The widgets of the panel, named for what they show."""

    page: PageContext
    chosen: gr.Radio
    facts: gr.HTML
    log: gr.Textbox
    stop_and_save: gr.Button
    stop_now: gr.Button
    resume: gr.Button
    delete: gr.Button
    reasons: gr.HTML
    question: Question
    listing: Callable[[Project], list[runs.Run]] = runs.list_runs
    tell_facts: Callable[[runs.Run, runs.State, str], str] = views.run_facts
    tell_log: Callable[[runs.Run], str] = views.log_tail

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
        """Read the disk once and show what it says; it is asked every few seconds, so an error stays in its place."""
        try:
            found = self.listing(self.page.open(project))
            chosen = next((one for one in found if one.name == run), found[0] if found else None)
            choices = gr.update(choices=views.run_choices(found, language))
            if chosen is None or chosen.name != run:  # else leave the choice alone: a person may be moving it now
                choices["value"] = chosen.name if chosen else None
            return choices, *self._details(chosen, language)
        except AmharicTtsError as error:
            return (
                gr.update(choices=[], value=None),
                views.note(error_text.describe(error, language)),
                "",
                "",
                *[gr.update(interactive=False)] * 4,
            )

    def _details(self, chosen: runs.Run | None, language: str) -> tuple[Any, ...]:
        if chosen is None:
            facts, log, abilities = views.note(t("runs.none_yet", language)), "", views.NOTHING_CHOSEN
        else:
            state = chosen.current_state()
            try:
                facts, log = self.tell_facts(chosen, state, language), self.tell_log(chosen)
            except AmharicTtsError as error:  # a damaged file of one run: the others, and its deletion, are still there
                facts, log = views.note(error_text.describe(error, language)), ""
            abilities = views.ABILITIES[state.status]
        locks = [gr.update(interactive=not reason) for reason in abilities.named.values()]
        return facts, log, views.disabled_reasons(abilities.named, language), *locks

    def act(self, action: Callable[[runs.Run], object], sentence: str) -> Callable[..., tuple[Any, ...]]:
        """Make the handler that does one thing with the chosen run, says so, and shows what came of it."""

        @show_errors
        def acted(project: str, run: str | None, language: str, about: object = None) -> tuple[Any, ...]:
            refuse_another(about, project, run)
            found = runs.find_run(self.page.open(project), run)
            action(found)
            notify(t(sentence, language, name=found.name))
            return self.show(project, run, language)

        return acted

    def started(self, start: Callable[[Project], runs.Run], project: str, language: str) -> tuple[Any, ...]:
        """Start a run, say so, and show it as the chosen one."""
        run = start(self.page.open(project))
        notify(t("runs.started", language, name=run.name))
        choices, *details = self.show(project, run.name, language)
        return choices | {"value": run.name}, *details


def build_run_panel(
    page: PageContext,
    name: str = "",
    listing: Callable[[Project], list[runs.Run]] = runs.list_runs,
    tell_facts: Callable[[runs.Run, runs.State, str], str] = views.run_facts,
    tell_log: Callable[[runs.Run], str] = views.log_tail,
) -> RunPanel:
    """Lay out the panel and tie it to the disk.

    Args:
        page: The frame around it.
        name: Tells it from other panels of the page, in the ids of its elements and the names of its events.
        listing: Lists the runs that it is for.
        tell_facts: Shows what a run is doing, as HTML.
        tell_log: Returns the end of what a run wrote.
    """
    ids = f"{name}-" if name else ""
    with gr.Row():
        with gr.Column(scale=2, min_width=280):
            chosen = gr.Radio([], label=t("runs.run"), elem_id=f"{ids}runs", elem_classes="long-list", interactive=True)
            facts = gr.HTML(elem_id=f"{ids}run-facts")
            with gr.Row():
                stop_and_save = gr.Button(
                    t("common.stop_and_save"), elem_id=f"{ids}stop-and-save", interactive=False, min_width=150
                )
                stop_now = gr.Button(
                    t("common.stop_now"), elem_id=f"{ids}stop-now", variant="stop", interactive=False, min_width=150
                )
                resume = gr.Button(t("common.resume"), elem_id=f"{ids}resume", interactive=False, min_width=150)
                delete = gr.Button(t("common.delete"), elem_id=f"{ids}delete", interactive=False, min_width=150)
            reasons = gr.HTML(elem_id=f"{ids}run-reasons")
            question = build_question(f"{ids}run-question", "runs.confirm_delete", "runs.cancel_delete")
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
        question,
        listing,
        tell_facts,
        tell_log,
    )
    _tie(panel, f"{name}_" if name else "")
    return panel


def command_box(name: str, *, visible: bool = True) -> gr.Textbox:
    """Make the box of the command that starts the same run."""
    return gr.Textbox(
        label=t("runs.command"),
        info=t("runs.command_hint"),
        lines=2,
        max_lines=8,
        buttons=["copy"],
        interactive=False,
        visible=visible,
        elem_id=name,
    )


def _tie(panel: RunPanel, prefix: str) -> None:
    show = show_errors(panel.show)
    clicked = RAW_INPUTS | {
        "show_progress_on": panel.facts
    }  # the status of each widget that shows one costs at every event
    gr.on(
        [*panel.page.refresh, panel.chosen.input],
        show,
        panel.inputs,
        panel.outputs,
        api_name=f"{prefix}show_run",
        **RAW_INPUTS,
        **QUIET_EVENT,
    )
    for button, action, sentence, name in (
        (panel.stop_and_save, runs.stop_and_save, "runs.stopping", "stop_and_save"),
        (panel.stop_now, runs.stop_now, "runs.stopped", "stop_now"),
        (panel.resume, runs.resume, "runs.started", "resume_run"),
    ):
        button.click(
            panel.act(action, sentence),
            panel.inputs,
            panel.outputs,
            api_name=f"{prefix}{name}",
            concurrency_limit=None,
            **clicked,
        )
    *subject, language = panel.inputs
    panel.question.tie(
        panel.delete,
        subject,
        language,
        lambda _, run, spoken: t("runs.ask_delete", spoken, name=run),
        panel.act(runs.delete, "runs.deleted"),
        panel.outputs,
        api_name=f"{prefix}delete_run",
        **clicked,
    )
