"""The live view of the selected run, its export, and the comparison of runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gradio as gr
import pandas as pd

from utils import runs
from utils.config import TrainConfig
from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.ui.i18n import describe_error, heading, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, changed_updates, notify, show_errors
from utils.ui.run_panel import RunPanel
from utils.ui.tabs.training import comparison, device, queries, render, settings
from utils.ui.tabs.training.forecast import gigabytes
from utils.ui.tabs.training.render import CHARTS, ChartRow
from utils.ui.tabs.training.run_history import HistoryCache, RunHistory
from utils.ui.tabs.training.settings import settings_error
from utils.ui.tabs.training.settings_form import TrainForm, form_values
from utils.ui.views import message_box, note
from utils.xtts import checkpoints
from utils.xtts.checkpoints import Checkpoint

START_FIELDS = ("version", "custom_model", "train_csv", "eval_csv")  # decide whether a run can start
COLUMNS = ("step", "value", "curve")


@dataclass(frozen=True)
class LiveView:
    """The widgets that follow the selected run.

    Attributes:
        page: The frame around them.
        form: The settings.
        panel: Selects the run.
        histories: What runs have reported.
        device: What is known of this device.
        widgets: By name, in the order in which ``refresh`` fills them.
        shown: What this visitor sees; only changes are sent.
    """

    page: PageContext
    form: TrainForm
    panel: RunPanel
    histories: HistoryCache
    device: queries.CachedQuery
    widgets: Mapping[str, Any]
    shown: gr.State = field(default_factory=lambda: gr.State({}))

    @property
    def outputs(self) -> list[Any]:
        """Return what ``refresh`` fills, in its order."""
        return [self.shown, *self.widgets.values()]

    def refresh(self, shown: dict[str, Any], project: str, run: str | None, language: str, *values: str) -> list[Any]:
        """Read the disk and return what has changed since this visitor's last refresh."""
        *start_values, checkpoint = values
        try:
            place = self.page.open(project)
            state = self._read(place, run, language, dict(zip(START_FIELDS, start_values, strict=True)), checkpoint)
        except AmharicTtsError as error:  # shown in place: this runs on every tick
            state = {"messages": note(describe_error(error, language))}
        updates = changed_updates(shown, state, self.widgets)
        return [frame(update) if isinstance(update, list) else update for update in updates]

    def hints(self, project: str, run: str | None, language: str) -> list[str]:
        """Return what each optimization does on this device, and what it did in the selected run."""
        try:
            found = {item.name: item for item in settings.list_trainings(self.page.open(project))}
        except AmharicTtsError:  # shown by the live view
            found = {}
        effects = self.histories.read(found[run]).switches if run in found else {}
        known = self.device.result
        return [device.hint(name, known, effects.get(name), language) for name in settings.SWITCHES]

    def _read(
        self, place: Project, name: str | None, language: str, start_values: Mapping[str, str], checkpoint: str | None
    ) -> dict[str, Any]:
        found = settings.list_trainings(place)
        run = next((item for item in found if item.name == name), None)
        history = self.histories.read(run) if run else RunHistory()
        blocked = settings.start_blocked(place, start_values, language)
        active = render.active_optimizations(history, language) + render.tracker_folder(run, language) if run else ""
        return {
            "device": self._device(language),
            "train": {"interactive": not blocked},
            "reason": note(blocked),
            **{title: render.chart_rows(history, curves, language) for title, curves in CHARTS.items()},
            "messages": render.messages(history, language),
            "samples": render.samples(run, history, language) if run else "",
            "active": active,
            "reuse": {"interactive": run is not None},
            "compared": {"choices": [(item.name, item.name) for item in found]},
            **export_updates(run, checkpoint, language),
        }

    def _device(self, language: str) -> str:
        known = self.device.get()
        if self.device.error:
            return note(describe_error(self.device.error, language))
        return note(device.describe(known, language) if known else t("training.detecting_device", language))


def frame(rows: Sequence[ChartRow]) -> pd.DataFrame | None:
    """Return the points of a chart as its value; None for an empty chart."""
    return pd.DataFrame(rows, columns=list(COLUMNS)) if rows else None


def line_plot(title: str, elem_id: str | None = None) -> gr.LinePlot:
    """Return an empty chart of values by step."""
    step, value, curve = COLUMNS
    return gr.LinePlot(
        x=step,
        y=value,
        color=curve,
        label=t(title),
        x_title=t("common.step"),
        y_title=" ",
        color_title=" ",
        height=220,
        min_width=320,
        elem_id=elem_id or title.removeprefix("training.").replace("_", "-") + "-chart",
    )


def build_live() -> dict[str, Any]:
    """Lay out what follows the selected run."""
    messages = gr.HTML(elem_id="messages")
    with gr.Row():
        charts = {title: line_plot(title) for title in CHARTS}
    with gr.Accordion(t("training.sample_sentences"), open=True):
        samples = gr.HTML(elem_id="samples")
    active = gr.HTML(elem_id="what-is-on")
    reuse = gr.Button(t("training.reuse_settings"), elem_id="take-settings", interactive=False)
    return {**charts, "messages": messages, "samples": samples, "active": active, "reuse": reuse}


def connect_live(view: LiveView, tab: gr.Tab) -> None:
    """Refresh on every tick, and when another run is selected."""
    page, form, panel = view.page, view.form, view.panel
    start_widgets = [form.widgets[name] for name in START_FIELDS]
    changes = [widget.change for widget in start_widgets]  # type: ignore[attr-defined]
    gr.on(
        [*page.refresh, panel.chosen.change, *changes],
        show_errors(view.refresh),
        [view.shown, page.project, panel.chosen, page.language, *start_widgets, view.widgets["checkpoint"]],
        view.outputs,
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )
    events = [view.widgets["device"].change, view.widgets["active"].change, tab.select, panel.chosen.change]
    events += [event for event in page.refresh if event is not page.clock.tick]  # too many widgets for every tick
    gr.on(
        events,
        view.hints,
        panel.inputs,
        [form.hints[name] for name in settings.SWITCHES],
        trigger_mode="always_last",
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )


def connect_start(view: LiveView, button: gr.Button, message: gr.HTML) -> None:
    """Start a run with the settings of the form; show problems beside the button."""
    page, form, panel = view.page, view.form, view.panel

    @show_errors
    def train(project: str, page_language: str, **values: object) -> tuple[Any, ...]:
        try:
            config = settings.read_settings(values, page.open(project))
            started = panel.started(lambda place: settings.start(config, place), project, page_language)
        except AmharicTtsError as error:
            return *[gr.skip()] * len(panel.outputs), settings_error(error, page_language)
        return *started, ""

    button.click(
        train,
        inputs_kwargs=form.inputs,
        outputs=[*panel.outputs, message],
        api_name="train",
        show_progress_on=panel.facts,
        concurrency_limit=None,
        **RAW_INPUTS,
    )


def connect_reuse(view: LiveView, button: gr.Button) -> None:
    """Fill the form with the settings of the selected run."""

    @show_errors
    def reuse(project: str, run: str | None, language: str) -> list[Any]:
        found = runs.find_run(view.page.open(project), run)
        notify(t("training.settings_loaded", language, name=found.name))
        return form_values(TrainConfig.load(found.config), keep_paths=False)

    button.click(
        reuse,
        view.panel.inputs,
        view.form.outputs,
        api_name="take_settings",
        show_progress_on=view.panel.facts,
        **RAW_INPUTS,
    )


def build_comparison() -> tuple[gr.Dropdown, gr.LinePlot, gr.HTML]:
    """Lay out the comparison of runs."""
    with gr.Accordion(t("training.compare_runs"), open=False, elem_id="comparison"):
        chosen = gr.Dropdown(
            [],
            multiselect=True,
            max_choices=comparison.MAX_RUNS,
            label=t("training.runs_to_compare"),
            info=t("training.runs_to_compare_hint"),
            interactive=True,
            elem_id="compared-runs",
        )
        chart = line_plot("training.evaluation_loss", "compared-chart")
        shown = gr.HTML(elem_id="compared")
    return chosen, chart, shown


def connect_comparison(view: LiveView, chosen: gr.Dropdown, chart: gr.LinePlot, shown: gr.HTML) -> None:
    """Compare the selected runs."""
    page = view.page

    @show_errors
    def compare(project: str, names: list[str] | None, language: str) -> tuple[pd.DataFrame | None, str]:
        place = page.open(project)
        found = [runs.find_run(place, name) for name in (names or [])[: comparison.MAX_RUNS]]
        compared = [
            comparison.ComparedRun(run, view.histories.read(run), comparison.read_settings(run)) for run in found
        ]
        return frame(comparison.evaluation_rows(compared)), comparison.comparison_table(compared, language)

    gr.on(
        [chosen.change, page.language.change],
        compare,
        [page.project, chosen, page.language],
        [chart, shown],
        api_name="compare_runs",
        show_progress="hidden",
        **RAW_INPUTS,
    )


def build_export(page: PageContext, panel: RunPanel) -> dict[str, Any]:
    """Lay out the checkpoints and the button that exports one as the finished model."""
    gr.Markdown(heading("common.finished_model"))
    with gr.Row():
        checkpoint = gr.Dropdown(
            [],
            label=t("training.checkpoint"),
            info=t("training.checkpoint_hint"),
            interactive=True,
            elem_id="checkpoint",
            min_width=280,
        )
        half = gr.Checkbox(
            label=t("training.half_precision"),
            info=t("training.half_precision_hint"),
            interactive=True,
            elem_id="half",
            min_width=280,
        )
    button = gr.Button(t("training.export_model"), variant="primary", elem_id="optimize", interactive=False)
    reason, done = gr.HTML(elem_id="optimize-reason"), gr.HTML(elem_id="optimized")

    @show_errors
    def export(project: str, run: str | None, step: str | None, half: bool, language: str) -> str:  # noqa: FBT001  # positional in gradio
        return export_checkpoint(page.open(project), run, step, half=half, language=language)

    button.click(
        export,
        [page.project, panel.chosen, checkpoint, half, page.language],
        done,
        api_name="optimize_model",
        show_progress="minimal",
        **RAW_INPUTS,
    )
    return {"checkpoint": checkpoint, "export": button, "export_reason": reason}


def export_updates(run: runs.Run | None, chosen: object, language: str) -> dict[str, Any]:
    """Return the checkpoints of a run, the state of the button, and why it is disabled."""
    found = [item for item in checkpoints.list_checkpoints(run.folder) if item.info] if run else []
    steps = [str(item.step) for item in found]
    best = next((str(item.step) for item in found if item.is_best), steps[0] if steps else None)
    choices: dict[str, object] = {"choices": [(checkpoint_label(item, language), str(item.step)) for item in found]}
    if chosen not in steps:
        choices["value"] = best
    reason = "" if steps else t("training.no_checkpoint", language)
    return {"checkpoint": choices, "export": {"interactive": bool(steps)}, "export_reason": note(reason)}


def checkpoint_label(checkpoint: Checkpoint, language: str) -> str:
    """Return step, loss and size of a checkpoint in a line."""
    parts = [f"{t('common.step', language)} {checkpoint.step}"]
    if checkpoint.info and checkpoint.info.eval_loss is not None:
        parts.append(t("common.evaluation_loss", language, loss=f"{checkpoint.info.eval_loss:.4f}"))
    parts.append(gigabytes(checkpoint.size))
    if checkpoint.is_best:
        parts.append(f"★ {t('training.best', language)}")
    return " · ".join(parts)


def export_checkpoint(place: Project, run: object, step: object, *, half: bool, language: str) -> str:
    """Write ready/ in a child process and return a message."""
    found = runs.find_run(place, run)
    number = int(str(step)) if str(step).isdecimal() else 0
    result = queries.ask("export", run=str(found.folder), step=number, ready=str(place.ready), half=half)
    voice = Path(result["voice"]).name if result["voice"] else t("training.base_model", language)
    size = gigabytes(int(result["size"]))
    sentence = t(
        "training.exported", language, step=number, run=found.name, folder=result["folder"], size=size, voice=voice
    )
    return message_box("success", sentence)
