"""The live view of the selected run, its export, and the comparison of runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gradio as gr
import pandas as pd

from utils import runs
from utils.config import TrainConfig
from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.ui.form import MULTISELECT
from utils.ui.i18n import describe_error, labels, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, Advanced, PageContext, changed_updates, notify, show_errors
from utils.ui.run_panel import RunPanel
from utils.ui.status_strip import next_button
from utils.ui.tabs.training import queries, render, settings
from utils.ui.tabs.training.render import CHARTS, ChartRow
from utils.ui.tabs.training.run_history import HistoryCache, RunHistory
from utils.ui.tabs.training.settings import TrainForm
from utils.ui.views import gigabytes, message_box, note
from utils.xtts import checkpoints
from utils.xtts.checkpoints import Checkpoint

START_FIELDS = ("version", "custom_model", "train_csv", "eval_csv")  # decide whether a run can start
COLUMNS = ["step", "value", "curve"]
MAIN_CHARTS = ("training.loss_audio", "training.evaluation_loss")


class LiveView:
    """The widgets that follow the selected run, by name; each visitor is sent only what has changed."""

    def __init__(self, form: TrainForm, panel: RunPanel, histories: HistoryCache, widgets: Mapping[str, Any]) -> None:
        self.form, self.panel, self.histories, self.widgets = form, panel, histories, widgets
        self.device = queries.CachedQuery("device")

    def connect(self, tab: gr.Tab) -> None:
        """Refresh on every tick, and when another run is selected."""
        page, panel, shown = self.form.page, self.panel, gr.State({})
        start_widgets = [self.form.widgets[name] for name in START_FIELDS]
        gr.on(
            [*page.refresh, panel.chosen.change, *(widget.change for widget in start_widgets)],
            show_errors(self.refresh),
            [shown, page.project, panel.chosen, page.language, *start_widgets, self.widgets["checkpoint"]],
            [shown, *self.widgets.values()],
            **RAW_INPUTS,
            **PRIVATE_EVENT,
        )
        events = [self.widgets["device"].change, self.widgets["active"].change, tab.select, panel.chosen.change]
        events += [event for event in page.refresh if event is not page.clock.tick]  # too many widgets for every tick
        gr.on(
            events,
            self.hints,
            panel.inputs,
            [self.form.hints[name] for name in settings.SWITCHES],
            trigger_mode="always_last",
            **RAW_INPUTS,
            **PRIVATE_EVENT,
        )

    def refresh(self, shown: dict[str, Any], project: str, run: str | None, language: str, *values: str) -> list[Any]:
        """Read the disk and return what has changed since this visitor's last refresh."""
        *start_values, checkpoint = values
        try:
            opened = self.form.page.open(project)
            blocked = settings.start_blocked(opened, dict(zip(START_FIELDS, start_values, strict=True)), language)
            state = {
                "device": self._device(language),
                "train": {"visible": not blocked},
                "reason": note(blocked),
                **self._run_updates(opened, run, checkpoint, language),
            }
        except AmharicTtsError as error:  # shown in place: this runs on every tick
            state = {"messages": note(describe_error(error, language))}
        updates = changed_updates(shown, state, self.widgets)
        return [frame(update) if isinstance(update, list) else update for update in updates]

    def _device(self, language: str) -> str:
        device = self.device.get()
        if self.device.error:
            return note(describe_error(self.device.error, language))
        return note(render.device_line(device, language) if device else t("training.detecting_device", language))

    def _run_updates(self, project: Project, name: str | None, checkpoint: str, language: str) -> dict[str, Any]:
        trainings = settings.list_trainings(project)
        run = next((item for item in trainings if item.name == name), None)
        history = self.histories.read(run) if run else RunHistory()
        return {
            **{title: render.chart_rows(history, curves, language) for title, curves in CHARTS.items()},
            "messages": render.messages(history, language),
            "samples": render.samples(run, history, language) if run else "",
            "active": render.active_optimizations(run, history, language) if run else "",
            "live": {"visible": run is not None},
            "compared": {"choices": [(item.name, item.name) for item in trainings]},
            **export_updates(run, checkpoint, language),
        }

    def hints(self, project: str, run: str | None, language: str) -> list[str]:
        """Return what each optimization does on this device, and what it did in the selected run."""
        try:
            trainings = {item.name: item for item in settings.list_trainings(self.form.page.open(project))}
        except AmharicTtsError:  # shown by the live view
            trainings = {}
        effects = self.histories.read(trainings[run]).switches if run in trainings else {}
        device = self.device.result
        return [render.switch_hint(name, device, effects.get(name), language) for name in settings.SWITCHES]


def frame(rows: Sequence[ChartRow]) -> pd.DataFrame | None:
    """Return the points of a chart as its value; None for an empty chart."""
    return pd.DataFrame(rows, columns=COLUMNS) if rows else None


def line_plot(title: str, elem_id: str) -> gr.LinePlot:
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
        elem_id=elem_id,
    )


def build_live(form: TrainForm, panel: RunPanel, advanced: Advanced) -> dict[str, Any]:
    """Lay out what follows the selected run, and the button that fills the form with its settings."""
    with gr.Column(visible=False) as live:
        messages = gr.HTML(elem_id="messages")
        with gr.Row():
            charts = {title: build_chart(title) for title in MAIN_CHARTS}
        with gr.Accordion(t("training.sample_sentences"), open=True):
            samples = gr.HTML(elem_id="samples")
        with advanced.section():
            with gr.Row():
                charts |= {title: build_chart(title) for title in CHARTS if title not in MAIN_CHARTS}
            active = gr.HTML(elem_id="what-is-on")
            button = gr.Button(t("training.reuse_settings"), elem_id="take-settings")

    @show_errors
    def reuse(project: str, run: str | None, language: str) -> list[Any]:
        selected = runs.find_run(form.page.open(project), run)
        notify(t("training.settings_loaded", language, name=selected.name))
        return settings.form_values(TrainConfig.load(selected.config), keep_paths=False)

    button.click(
        reuse, panel.inputs, form.outputs, api_name="take_settings", show_progress_on=panel.facts, **RAW_INPUTS
    )
    return {"live": live, **charts, "messages": messages, "samples": samples, "active": active}


def build_chart(title: str) -> gr.LinePlot:
    return line_plot(title, title.removeprefix("training.").replace("_", "-") + "-chart")


def build_comparison(page: PageContext, histories: HistoryCache) -> gr.Dropdown:
    with gr.Accordion(t("training.compare_runs"), open=False, elem_id="comparison"):
        texts = labels("training.runs_to_compare")
        chosen = gr.Dropdown([], max_choices=render.MAX_COMPARED, elem_id="compared-runs", **MULTISELECT, **texts)
        chart = line_plot("training.evaluation_loss", "compared-chart")
        table = gr.HTML(elem_id="compared")

    @show_errors
    def compare(project: str, names: list[str] | None, language: str) -> tuple[pd.DataFrame | None, str]:
        opened = page.open(project)
        selected = [runs.find_run(opened, name) for name in (names or [])[: render.MAX_COMPARED]]
        compared = [histories.read(run) for run in selected]
        rows = zip(selected, compared, strict=True)
        points = [(step, loss, run.name) for run, history in rows for step, loss in history.points("eval")]
        return frame(points), render.comparison_table(selected, compared, language)

    gr.on(
        [chosen.change, page.language.change],
        compare,
        [page.project, chosen, page.language],
        [chart, table],
        api_name="compare_runs",
        show_progress="hidden",
        **RAW_INPUTS,
    )
    return chosen


def build_export(page: PageContext, panel: RunPanel, advanced: Advanced) -> dict[str, Any]:
    """Lay out the checkpoints, the button that exports one as the finished model, and the way on."""
    with gr.Column(visible=False) as box:
        with gr.Row(elem_classes="beside"):
            texts = labels("training.checkpoint")
            checkpoint = gr.Dropdown([], interactive=True, elem_id="checkpoint", min_width=280, **texts)
            button = gr.Button(t("training.export_model"), elem_id="optimize", min_width=160, scale=0)
            following = gr.HTML(elem_id="next-inference")
        with advanced.section():
            half = gr.Checkbox(interactive=True, elem_id="half", **labels("training.half_precision"))
        done = gr.HTML(elem_id="optimized")

    @show_errors
    def export(project: str, run: str | None, step: str | None, half: bool, language: str) -> str:  # noqa: FBT001  # positional in gradio
        opened = page.open(project)
        selected = runs.find_run(opened, run)
        number = int(str(step)) if str(step).isdecimal() else 0
        result = queries.ask("export", run=str(selected.folder), step=number, ready=str(opened.ready), half=half)
        sentence = t(
            "training.exported",
            language,
            step=number,
            run=selected.name,
            folder=result["folder"],
            size=gigabytes(int(result["size"])),
            voice=Path(result["voice"]).name or t("training.base_model", language),
        )
        return message_box("success", sentence)

    button.click(
        export,
        [page.project, panel.chosen, checkpoint, half, page.language],
        done,
        api_name="optimize_model",
        show_progress="minimal",
        **RAW_INPUTS,
    )
    return {"export": box, "checkpoint": checkpoint, "next": following}


def export_updates(run: runs.Run | None, chosen: object, language: str) -> dict[str, Any]:
    """Return the checkpoints of a run, and whether there are any."""
    usable = [item for item in checkpoints.list_checkpoints(run.folder) if item.info] if run else []
    steps = [str(item.step) for item in usable]
    choices: dict[str, object] = {"choices": [(checkpoint_label(item, language), str(item.step)) for item in usable]}
    if chosen not in steps:
        choices["value"] = next((str(item.step) for item in usable if item.is_best), steps[0] if steps else None)
    following = next_button("inference-tab", "strip.next_speak", language)
    return {"export": {"visible": bool(steps)}, "checkpoint": choices, "next": following}


def checkpoint_label(checkpoint: Checkpoint, language: str) -> str:
    parts = [f"{t('common.step', language)} {checkpoint.step}"]
    if checkpoint.info and checkpoint.info.eval_loss is not None:
        parts.append(t("common.evaluation_loss", language, loss=f"{checkpoint.info.eval_loss:.4f}"))
    parts.append(gigabytes(checkpoint.size))
    if checkpoint.is_best:
        parts.append(f"★ {t('training.best', language)}")
    return " · ".join(parts)
