"""What follows the selected run: the start, charts, samples, the export, and the comparison of runs."""

import functools
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from html import escape
from typing import Any

import gradio as gr

from utils.config import SEPARATOR, TrainConfig
from utils.core.errors import AmharicTtsError
from utils.dataset.store import Store
from utils.studio import runs, tasks, training_checks
from utils.studio.paths import Project
from utils.studio.run_history import HistoryCache, RunHistory
from utils.studio.run_state import State
from utils.ui import views
from utils.ui.i18n import describe_error, labels, t
from utils.ui.page import (
    PRIVATE_EVENT,
    RAW_INPUTS,
    Advanced,
    PageContext,
    Panel,
    PanelRequest,
    connect_live,
    notify,
    show_errors,
)
from utils.ui.run_panel import RunPanel, find, stop_action, task_status
from utils.ui.settings_form import SettingsForm
from utils.ui.status_strip import next_button
from utils.ui.tabs.training import render, settings
from utils.ui.tabs.training.render import CHARTS
from utils.ui.views import gigabytes, note
from utils.xtts import checkpoints
from utils.xtts.checkpoints import Checkpoint

MAIN_CHARTS = ("training.loss_audio", "training.evaluation_loss", "training.scores")
MAX_SMOOTHING = 0.95
PROMOTE = "checkpoints"  # kind of the task that makes one the finished model


@functools.cache
def detect_device() -> "Future[dict[str, Any]]":
    """Ask for the device of this computer in the background, once."""
    return ThreadPoolExecutor(1, "device").submit(training_checks.ask, "device")


def known_device() -> dict[str, Any] | None:
    """Return the device once it is known."""
    future = detect_device()
    return future.result() if future.done() and not future.exception() else None


class TrainPanel(RunPanel):
    """The runs, with what the selected one warned of, its settings for the form, and its checkpoints to export."""

    def __init__(self, page: PageContext, form: SettingsForm, histories: HistoryCache) -> None:
        self.form, self.histories = form, histories
        # The form itself is no output of the actions: those that leave it alone would drop its effects.
        self.reused = gr.Textbox(visible=False, **labels("runs.run"))
        super().__init__(page, "training", settings.list_trainings, self.facts_of, [self.reused])
        inputs = [page.project, self.reused]
        self.reused.change(show_errors(self._load_settings), inputs, form.widget, **RAW_INPUTS, **PRIVATE_EVENT)

    @property
    def actions(self) -> dict[str, Any]:
        resume = self._action(functools.partial(runs.resume, before=self.page.session.make_room), "runs.started")
        return {
            **super().actions,
            "resume": resume,
            "reuse": self._reuse,
            "export": self._export,
            **stop_action(PROMOTE),
        }

    def facts_of(self, run: runs.Run, state: State, language: str) -> str:
        history = self.histories.read(run)
        return render.facts(run, state, history, language) + render.messages(history, language)

    def ask_stop(self, run: runs.Run, language: str) -> str:
        history = self.histories.read(run)
        lost = max(0, history.step - history.saved)
        return t("training.ask_stop", language, name=run.title, saved=history.saved, lost=lost)

    def more(self, run: runs.Run, request: PanelRequest) -> str:
        """Return the checkpoints, the button that exports one as the finished model, and the way on."""
        language = request.language
        reuse = views.button("reuse", t("training.reuse_settings", language), run=run.name)
        usable = [item for item in checkpoints.list_checkpoints(run.folder) if item.info]
        if not usable:
            return f'<div class="more">{reuse}</div>'
        choices = [(checkpoint_label(item, language), str(item.step)) for item in usable]
        best = next((str(item.step) for item in usable if item.is_best), choices[0][1])
        hint, title = t("training.checkpoint_hint", language), t("training.checkpoint", language)
        chosen = request.text("checkpoint") if request.text("of") == run.name else best
        options = {"chosen": chosen, "data_of": run.name, "value": best}
        chooser = views.select_field("checkpoint", title, choices, hint, **options)
        half = f'<input type="checkbox" name="half"> {t("training.half_precision", language)}'
        half = f'<label class="more">{half}{note(t("training.half_precision_hint", language))}</label>'
        export = views.button("export", t("training.export_model", language), run=run.name, of=run.name)
        has_ended = run.current_state().status in {runs.Status.FINISHED, runs.Status.STOPPED}
        following = next_button("inference-tab", "strip.next_speak", language) if has_ended else ""
        done = task_status(PROMOTE, request, lambda _: t("strip.ready", language))
        return views.row(chooser, half, export, following, f'<span class="more">{reuse}</span>') + done

    def _reuse(self, request: PanelRequest) -> dict[Any, Any]:
        run = find(request)
        notify(t("training.settings_loaded", request.language, name=run.title))
        return {self.reused: f"{run.name}{SEPARATOR}{time.time()}"}

    def _load_settings(self, project: str, reused: str) -> dict[str, object]:
        run = runs.find_run(self.page.open(project), reused.partition(SEPARATOR)[0])
        return self.form.value(TrainConfig.load(run.config))

    def _export(self, request: PanelRequest) -> None:
        words = ["promote", find(request).name, request.text("checkpoint") or "best"]
        words += ["--half"] if request.fields.get("half") else []
        tasks.start(PROMOTE, [*words, "--project", request.name, "--output", str(self.page.output)], request.project)


def build_live(panel: TrainPanel, advanced: Advanced) -> dict[str, Any]:
    """Lay out the charts and the samples of the selected run."""
    with gr.Row(visible=False) as live:
        with gr.Column(scale=3, min_width=320):
            with gr.Row():
                charts = {title: line_plot(title) for title in MAIN_CHARTS}
            options: dict[str, Any] = {"step": 0.05, "interactive": True, "elem_id": "smoothing"}
            smoothing = gr.Slider(0, MAX_SMOOTHING, value=0, **labels("training.smoothing"), **options)
            with advanced.section(), gr.Row():
                charts |= {title: line_plot(title) for title in CHARTS if title not in MAIN_CHARTS}

        def render_samples(request: PanelRequest) -> str:
            run = panel.selected(request.project, request.text("run"))
            if run is None:
                return ""
            history, language = panel.histories.read(run), request.language
            active = f'<div class="more">{render.active_optimizations(run, history, language)}</div>'
            title = f"<h3>{t('training.sample_sentences', language)}</h3>"
            return title + render.samples(run, history, language) + active

        with gr.Column(scale=2, min_width=300):
            samples = Panel(panel.page, "samples", render_samples, {}, reads={"run": panel.chosen}).html
    return {"live": live, **charts, "smoothing": smoothing, "samples": samples}


def line_plot(title: str, name: str = "") -> gr.LinePlot:
    name = name or title.removeprefix("training.").replace("_", "-")
    options: dict[str, Any] = {"y_title": " ", "color_title": " ", "tooltip": "all", "height": 220, "min_width": 300}
    options |= {"label": t(title), "x_title": t("common.step"), "elem_id": f"{name}-chart"}
    x, y, color = render.COLUMNS
    return gr.LinePlot(None, x, y, color=color, **options)


def connect_monitor(panel: TrainPanel, widgets: Mapping[str, Any]) -> None:
    """Refresh the start and the charts; each visitor is sent only what has changed."""
    page, form = panel.page, panel.form

    def state(  # the values of the widgets
        _: object, project: str, name: str | None, language: str, values: Mapping[str, object] | None, smoothing: float
    ) -> Mapping[str, Any]:
        try:
            opened = page.open(project)
            run = panel.selected(opened, name)
        except AmharicTtsError as error:  # shown in place: this runs on every tick
            return {"reason": note(describe_error(error, language)), "train": {"visible": False}}
        history = panel.histories.read(run) if run else RunHistory()
        return {
            **start_state(opened, values or {}, language),
            **{title: chart_state(history, title, smoothing, language) for title in CHARTS},
            "live": {"visible": run is not None},
        }

    inputs = [*panel.inputs, form.widget, widgets["smoothing"]]
    shown = {name: widget for name, widget in widgets.items() if name not in {"smoothing", "samples"}}
    changes = [panel.chosen.change, form.widget.change, widgets["smoothing"].release]
    connect_live(page, "training", state, inputs, shown, changes)


def connect_effects(tab: gr.Tab, panel: TrainPanel, widgets: Mapping[str, Any]) -> None:
    """Show below each optimization what it does on this device, and what it did in the selected run."""
    page, form = panel.page, panel.form

    @show_errors
    def effects(project: str, name: str | None, language: str) -> dict[str, Any]:
        run, device = panel.selected(page.open(project), name), known_device()
        switches = panel.histories.read(run).switches if run else {}
        hints = {
            switch: render.switch_hint(switch, device, switches.get(switch), language) for switch in settings.SWITCHES
        }
        return gr.update() | {"effects": hints}

    events = [tab.select, page.language.change, page.project.change]  # too much HTML for every tick
    events += [panel.chosen.change, widgets["device"].change, widgets["samples"].change]
    options: dict[str, Any] = {"trigger_mode": "always_last", **RAW_INPUTS, **PRIVATE_EVENT}
    gr.on(events, effects, panel.inputs, form.widget, **options)


def start_state(project: Project, values: Mapping[str, object], language: str) -> dict[str, Any]:
    """Return whether a run can be started, and on which device."""
    device: Any = known_device()
    if detect_device().done() and (error := detect_device().exception()):
        line = describe_error(error, language)
    else:
        line = render.device_line(device, language) if device else t("training.detecting_device", language)
    blocked, active = settings.start_blocked(project, values, language), runs.active_run(project, settings.VERB)
    queued = t("training.will_be_queued", language, name=active.title) if active else ""
    create = "" if Store(project.dataset).exists else next_button("data-tab", "strip.next_data", language)
    return {
        "device": note(line),
        "train": {"visible": not blocked, "value": t("training.queue" if active else "training.train_model", language)},
        "reason": note(blocked or queued) + create,
    }


def chart_state(history: RunHistory, title: str, smoothing: float, language: str) -> dict[str, Any]:
    curves = {t(label, language): history.points(name) for name, label in CHARTS[title].items()}
    value = render.chart(curves, min(smoothing or 0, MAX_SMOOTHING))
    return {"value": value, "visible": value is not None}


def build_comparison(page: PageContext, histories: HistoryCache) -> None:
    """Lay out a box for each run, and a chart and a table of those that are ticked."""

    def ticked(request: PanelRequest) -> list[runs.Run]:
        listed = settings.list_trainings(request.project)
        return [run for run in listed if request.fields.get(f"compare-{run.name}")][: render.MAX_COMPARED]

    def compare(request: PanelRequest) -> dict[Any, Any]:
        curves = {run.title: histories.read(run).points("eval") for run in ticked(request)}
        return {chart: gr.update(value=render.chart(curves), visible=len(curves) > 1)}

    def show(request: PanelRequest) -> str:
        listed, language = settings.list_trainings(request.project), request.language
        if len(listed) < 2:
            return ""
        boxes = [
            f"<label><input {views.attributes(type='checkbox', name=f'compare-{run.name}', data_act='compare')}> "
            f"{escape(run.title)}</label>"
            for run in listed
        ]
        chosen = ticked(request)
        table = render.comparison_table(chosen, [histories.read(run) for run in chosen], language)
        inner = f'<div class="scroll boxes" tabindex="0">{"".join(boxes)}</div>{table}'
        return f'<div class="more">{views.details(t("training.compare_runs", language), inner, "comparison")}</div>'

    chart = line_plot("training.evaluation_loss", "compared")
    chart.visible = False
    Panel(page, "comparison-panel", show, {"compare": compare}, [chart])


def checkpoint_label(checkpoint: Checkpoint, language: str) -> str:
    parts = [f"{t('common.step', language)} {checkpoint.step}"]
    if checkpoint.info and checkpoint.info.eval_loss is not None:
        parts.append(t("common.evaluation_loss", language, loss=f"{checkpoint.info.eval_loss:.4f}"))
    parts.append(gigabytes(checkpoint.size))
    if checkpoint.is_best:
        parts.append(f"★ {t('training.best', language)}")
    return " · ".join(parts)
