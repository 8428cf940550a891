"""What follows the selected run: the start, charts, samples, the export, and the comparison of runs."""

import functools
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import gradio as gr

from utils.config import SEPARATOR, TrainConfig
from utils.core.errors import AmharicTtsError
from utils.dataset.store import Store
from utils.studio import command_runs, runs, training_checks
from utils.studio.paths import Project
from utils.studio.run_history import HistoryCache, RunHistory
from utils.studio.run_state import State
from utils.ui import views
from utils.ui.html import ASSETS, html
from utils.ui.i18n import describe_error, field_title, t
from utils.ui.page import PRIVATE_EVENT, Action, PageContext, Panel, PanelRequest, Updates, connect_live, notify
from utils.ui.run_panel import RunPanel, command_status, find, in_project, stop_action
from utils.ui.settings_form import SettingsForm, Values
from utils.ui.step_bar import next_button
from utils.ui.tabs.training import render, settings
from utils.ui.views import gigabytes, note
from utils.xtts import checkpoints
from utils.xtts.checkpoints import SavedCheckpoint

PROMOTE = "checkpoints"  # the command that makes one the finished model


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
        self.reused = gr.State("")  # run and time
        super().__init__(page, "training", [settings.VERB], self.facts_of, [self.reused])
        inputs = [page.project, self.reused]
        page.on(self.reused.change, self._load_settings, inputs, form.widget, **PRIVATE_EVENT)

    @property
    def actions(self) -> dict[str, Action]:
        resume = self._action(functools.partial(runs.resume, before=self.page.session.make_room), "runs.started")
        return {
            **super().actions,
            "resume": resume,
            "reuse": self._reuse,
            "export": self._export,
            **stop_action(PROMOTE),
        }

    def waiting(self, request: PanelRequest) -> str:
        """Say what will appear here, and offer the way to the data if there is none."""
        store = Store(request.project.dataset)
        following = "" if store.exists else next_button("data-tab", "steps.next_data")
        return html("page.html", "empty", "waiting", "training.waiting", "training.waiting_text", following)

    def facts_of(self, run: runs.Run, state: State) -> str:
        history = self.histories.read(run)
        return render.facts(run, state, history) + render.messages(history)

    def ask_stop(self, run: runs.Run) -> str:
        history = self.histories.read(run)
        lost = max(0, history.step - history.saved)
        return t("training.ask_stop", name=views.run_title(run), saved=history.saved, lost=lost)

    def more(self, run: runs.Run, request: PanelRequest) -> str:
        """Return how the training ended, the menu that exports a checkpoint, and the way on."""
        usable = [item for item in checkpoints.list_checkpoints(run.folder) if item.info]
        if not usable:
            return ""
        chooser = _checkpoint_field(run, usable, request)
        half = views.check("half", "training.half_precision", "training.half_precision_hint")
        export = views.button("export", "training.export_model", run=run.name, of=run.name)
        history = self.histories.read(run)
        status = run.current_state().status
        titles = {"finished": t("training.done"), "stopped": t("training.stopped_early", step=history.step)}
        title = titles.get(status, "")
        following = next_button("inference-tab", "steps.next_speak") if title else ""
        done = command_status(PROMOTE, request, "steps.ready")
        sample = next(reversed(history.samples), None)
        sound = views.hear(render.sample_path(run, sample), "data.play") if sample else ""
        return html("run.html", "done", status, title, sound, following, chooser + half + export) + done

    def _buttons(self, run: runs.Run, status: runs.Status) -> list[str]:
        reuse = views.button("reuse", "training.reuse_settings", "quiet", run=run.name)
        buttons = super()._buttons(run, status)
        end = len(buttons) - ("delete" in views.run_actions(status))  # what destroys stands last
        return [*buttons[:end], reuse, *buttons[end:]]

    def _reuse(self, request: PanelRequest) -> Updates:
        run = find(request)
        notify("training.settings_loaded", name=views.run_title(run))
        return {self.reused: f"{run.name}{SEPARATOR}{time.time()}"}

    def _load_settings(self, project: str, reused: str) -> dict[str, object]:
        run = runs.find_run(self.page.open(project), reused.partition(SEPARATOR)[0])
        return self.form.value(TrainConfig.load_own(run.config))

    def _export(self, request: PanelRequest) -> None:
        words = ["promote", find(request).name, request.text("checkpoint") or "best"]
        words += ["--half"] if request.fields.get("half") else []
        command_runs.start(PROMOTE, [*words, *in_project(request)], request.project)


def build_live(panel: TrainPanel) -> dict[str, Any]:
    """Lay out the chart and the samples of the selected run."""
    shown = chart("training-chart")

    def render_samples(request: PanelRequest) -> str:
        run = panel.selected(request.project, request.text("run"))
        if run is None:
            return ""
        history = panel.histories.read(run)
        return render.samples(run, history) + render.active_optimizations(run, history)

    samples = Panel(panel.page, "samples", render_samples, {}, reads={"run": panel.chosen}).html
    return {"chart": shown, "samples": samples}


def chart(elem_id: str) -> gr.HTML:
    """Return a chart, whose value is that of ``render.chart``; None shows nothing."""
    script = (ASSETS / "chart.js").read_text(encoding="utf-8")
    return gr.HTML(None, html_template="", js_on_load=script, elem_id=elem_id, apply_default_css=False)


def connect_monitor(panel: TrainPanel, widgets: Mapping[str, Any]) -> None:
    """Refresh the start and the charts; each visitor is sent only what has changed."""
    page, form = panel.page, panel.form

    def state(_: object, project: str, name: str, values: Values) -> Mapping[str, Any]:
        try:
            opened = page.open(project)
            run = panel.selected(opened, name)
        except AmharicTtsError as error:  # shown in place: this runs on every tick
            return {"reason": note(describe_error(error)), "train": {"visible": False}}
        history = panel.histories.read(run) if run else RunHistory()
        return {**start_state(opened, values or {}), "chart": {"value": render.chart(history)}}

    inputs = [*panel.inputs, form.widget]
    shown = {name: widget for name, widget in widgets.items() if name != "samples"}
    changes = [panel.chosen.change, form.widget.change]
    connect_live(page, "training", state, inputs, shown, changes)


def connect_effects(tab: gr.Tab, panel: TrainPanel, widgets: Mapping[str, Any]) -> None:
    """Show below each optimization what it does on this device, and what it did in the selected run."""
    page, form = panel.page, panel.form

    def effects(project: str, name: str) -> dict[str, Any]:
        run, device = panel.selected(page.look(project), name), known_device()
        switches = panel.histories.read(run).switches if run else {}
        hints = {switch: render.switch_hint(switch, device, switches.get(switch)) for switch in settings.SWITCHES}
        return gr.update() | {"effects": hints}

    events = [tab.select, page.language.change, page.project.change]  # too much HTML for every tick
    events += [panel.chosen.change, widgets["device"].change, widgets["samples"].change]
    page.on_latest(events, effects, panel.inputs, [form.widget])


def start_state(project: Project, values: Values) -> dict[str, Any]:
    """Return whether a run can be started, and on which device."""
    device: Any = known_device()
    if detect_device().done() and (error := detect_device().exception()):
        line = describe_error(error)
    else:
        line = render.device_line(device) if device else t("training.detecting_device")
    blocked, active = settings.start_blocked(project, values), runs.active_run(project, settings.VERB)
    queued = t("training.will_be_queued", name=views.run_title(active)) if active else ""
    return {
        "line": settings_line(active) if active else "",
        "device": note(line),
        "train": {"visible": not blocked, "value": t("training.queue" if active else "training.train_model")},
        "reason": note(blocked or queued),
    }


def settings_line(run: runs.Run) -> str:
    """Return what the active run was started with in one line, with a button that shows those of the next."""
    try:
        config = TrainConfig.load_own(run.config)
    except AmharicTtsError:
        return ""
    shown = {"version": config.version, "num_epochs": config.num_epochs, "batch_size": config.batch_size}
    parts = [f"{field_title(TrainConfig, name)} {value}" for name, value in shown.items()]
    parts += [field_title(TrainConfig, name) for name in settings.BOXES if getattr(config, name)]
    about = views.element("span", text=views.joined(*parts), class_="hint")
    return views.row(about, html("views.html", "button", "data-edit", "quiet", "training.next_settings"))


def build_comparison(page: PageContext, histories: HistoryCache) -> None:
    """Lay out a box for each run, and a chart and a table of those that are ticked."""

    def ticked(request: PanelRequest) -> list[runs.Run]:
        listed = runs.list_runs(request.project, settings.VERB)
        return [run for run in listed if request.fields.get(f"compare-{run.name}")][: render.MAX_COMPARED]

    def compare(request: PanelRequest) -> Updates:
        curves = [(views.run_title(run), histories.read(run).points("eval")) for run in ticked(request)]
        return {compared: render.compared(curves)}

    def show(request: PanelRequest) -> str:
        listed = runs.list_runs(request.project, settings.VERB)
        if len(listed) < 2:
            return ""
        boxes = [views.check(f"compare-{run.name}", views.run_title(run), data_act="compare") for run in listed]
        chosen = ticked(request)
        table = render.comparison_table(chosen, [histories.read(run) for run in chosen])
        return views.details("training.compare_runs", views.boxes(boxes) + table, "comparison")

    compared = chart("compared-chart")
    Panel(page, "comparison-panel", show, {"compare": compare}, [compared])


def _checkpoint_field(run: runs.Run, usable: Sequence[SavedCheckpoint], request: PanelRequest) -> str:
    """Return the choice of a checkpoint to export, which is the best one at first."""
    choices = [(checkpoint_label(item), str(item.step)) for item in usable]
    best = next((str(item.step) for item in usable if item.is_best), choices[0][1])
    asked = request.text("checkpoint") if request.text("of") == run.name else ""
    chosen = asked if asked in {step for _, step in choices} else best  # it may have been pruned
    return views.select_field(
        "checkpoint",
        "training.checkpoint",
        choices,
        "training.checkpoint_hint",
        chosen,
        data_of=run.name,
        value=best,
    )


def checkpoint_label(checkpoint: SavedCheckpoint) -> str:
    return views.joined(
        views.checkpoint(checkpoint.step, checkpoint.info.eval_loss if checkpoint.info else None),
        gigabytes(checkpoint.size),
        f"★ {t('training.best')}" if checkpoint.is_best else "",
    )
