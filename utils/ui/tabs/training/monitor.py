"""The live view of the run that is chosen, read from its folder on every tick of the page's clock."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from utils import runs
from utils.config import TrainConfig
from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.ui import error_text
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, changed_updates, notify, show_errors
from utils.ui.run_panel import RunPanel
from utils.ui.tabs.training import device, fields, finalize, render, run_comparison, start
from utils.ui.tabs.training.event_reader import Watcher
from utils.ui.tabs.training.queries import Remembered
from utils.ui.tabs.training.run_history import Story
from utils.ui.tabs.training.settings_form import TrainForm, faulty, fill
from utils.ui.views import note

PATHS = ("version", "custom_model", "train_csv", "eval_csv")  # fields that decide whether a start can be


@dataclass(frozen=True)
class LiveView:
    """The widgets that follow the chosen run.

    Attributes:
        page: The frame around them.
        form: Of the settings.
        panel: Chooses the run.
        watcher: Reads events.
        facts: What is known of the device.
        widgets: By name, in the order in which ``look`` fills them.
        seen: What this visitor was shown last; only what is new is sent.
    """

    page: PageContext
    form: TrainForm
    panel: RunPanel
    watcher: Watcher
    facts: Remembered
    widgets: Mapping[str, Any]
    seen: gr.State = field(default_factory=lambda: gr.State({}))

    @property
    def outputs(self) -> list[Any]:
        """Return what ``look`` fills, in its order."""
        return [self.seen, *self.widgets.values()]

    def look(self, seen: dict[str, object], project: str, run: str | None, language: str, *given: str) -> list[Any]:
        """Read the disk once and return what has changed since this visitor looked last."""
        *paths, checkpoint = given
        try:
            place = self.page.open(project)
            made = self._made(place, run, language, dict(zip(PATHS, paths, strict=True)), checkpoint)
        except AmharicTtsError as error:  # asked on every tick: it stays in its place
            made = {"curves": note(error_text.describe(error, language))}
        return changed_updates(seen, made, self.widgets)

    def hints(self, project: str, run: str | None, language: str) -> list[str]:
        """Say what each switch does here, and what it did in the run that is chosen."""
        try:
            found = {one.name: one for one in start.trainings(self.page.open(project))}
        except AmharicTtsError:  # the live view says so
            found = {}
        did = self.watcher.look(found[run]).switches if run in found else {}
        return [device.hint(name, self.facts.answer, did.get(name), language) for name in fields.SWITCHES]

    def _made(
        self, place: Project, name: str | None, language: str, paths: Mapping[str, str], checkpoint: str | None
    ) -> dict[str, object]:
        found = start.trainings(place)
        run = next((one for one in found if one.name == name), None)
        story = self.watcher.look(run) if run else Story()
        reason = start.obstacle(place, paths, language)
        return {
            "device": _device(self.facts, language),
            "train": {"interactive": not reason},
            "reason": note(reason),
            "curves": render.curves(story, language) if run else "",
            "messages": render.messages(story, language),
            "samples": render.samples(run, story, language) if run else "",
            "on": render.what_is_on(story, language) + render.tracker_folder(run, language) if run else "",
            "take": {"interactive": run is not None},
            "compared": {"choices": [(one.name, one.name) for one in found]},
            **finalize.offered(run, checkpoint, language),
        }


def _device(facts: Remembered, language: str) -> str:
    known = facts.known()
    if facts.fault:
        return note(error_text.describe(facts.fault, language))
    return note(device.about(known, language) if known else t("training.detecting_device", language))


def tie_view(view: LiveView, tab: gr.Tab) -> None:
    """Look on every tick, and whenever another run is chosen."""
    page, form, panel = view.page, view.form, view.panel
    gr.on(
        [*page.refresh, panel.chosen.change, *(form.widgets[name].change for name in PATHS)],  # type: ignore[attr-defined]
        show_errors(view.look),
        [
            view.seen,
            page.project,
            panel.chosen,
            page.language,
            *(form.widgets[name] for name in PATHS),
            view.widgets["checkpoint"],
        ],
        view.outputs,
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )
    events = [view.widgets["device"].change, view.widgets["on"].change, tab.select, *page.refresh, panel.chosen.change]
    gr.on(
        [event for event in events if event is not page.clock.tick],  # sixteen widgets are too many for every tick
        view.hints,
        panel.inputs,
        [form.hints[name] for name in fields.SWITCHES],
        trigger_mode="always_last",
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )


def tie_start(view: LiveView, button: gr.Button, said: gr.HTML) -> None:
    """Start a run with the settings of the form; every fault is shown beside the button."""
    page, form, panel = view.page, view.form, view.panel

    @show_errors
    def train(project: str, page_language: str, **values: object) -> tuple[Any, ...]:
        try:
            config = start.complete(values, page.open(project))
            begun = panel.started(lambda place: start.start(config, place), project, page_language)
        except AmharicTtsError as error:
            return *[gr.skip()] * len(panel.outputs), faulty(error, page_language)
        return *begun, ""

    button.click(
        train,
        inputs_kwargs=form.given,
        outputs=[*panel.outputs, said],
        api_name="train",
        show_progress_on=panel.facts,
        concurrency_limit=None,
        **RAW_INPUTS,
    )


def tie_settings(view: LiveView, button: gr.Button) -> None:
    """Fill the form with the settings of the chosen run."""

    @show_errors
    def take(project: str, run: str | None, language: str) -> list[Any]:
        found = runs.find_run(view.page.open(project), run)
        notify(t("training.settings_loaded", language, name=found.name))
        return fill(TrainConfig.load(found.config), keep_paths=False)

    button.click(
        take,
        view.panel.inputs,
        view.form.outputs,
        api_name="take_settings",
        show_progress_on=view.panel.facts,
        **RAW_INPUTS,
    )


def tie_comparison(view: LiveView, chosen: gr.Dropdown, shown: gr.HTML) -> None:
    """Compare the runs that are chosen."""
    page = view.page

    @show_errors
    def compare(project: str, names: list[str] | None, language: str) -> str:
        place = page.open(project)
        found = [runs.find_run(place, name) for name in (names or [])[: run_comparison.MOST]]
        stories = [run_comparison.Told(run, view.watcher.look(run), run_comparison.settings_of(run)) for run in found]
        return run_comparison.compared(stories, language)

    gr.on(
        [chosen.change, page.language.change],
        compare,
        [page.project, chosen, page.language],
        shown,
        api_name="compare_runs",
        show_progress="hidden",
        **RAW_INPUTS,
    )
