"""Fine-tuning, in the order in which a person works: data, settings, checkpoints, training, the finished model."""

from typing import Any

import gradio as gr

from utils import runs
from utils.ui.i18n import heading, t
from utils.ui.page import RAW_INPUTS, PageContext, show_errors
from utils.ui.run_panel import RunPanel, build_run_panel
from utils.ui.tabs.training import finalize, render, start
from utils.ui.tabs.training.event_reader import Watcher
from utils.ui.tabs.training.memory import build_check, build_memory
from utils.ui.tabs.training.monitor import LiveView, tie_comparison, tie_settings, tie_start, tie_view
from utils.ui.tabs.training.queries import Remembered
from utils.ui.tabs.training.settings_form import (
    TrainForm,
    build_checkpoints,
    build_files,
    build_model,
    build_presets,
    build_settings,
    tie_memory,
    tie_presets,
)


def build(page: PageContext) -> gr.Tab:
    """Lay out the tab."""
    watcher = Watcher()
    tab = gr.Tab(t("training.tab"), id="training", elem_id="training-tab")
    with tab:
        gr.HTML(f"<style>{render.CSS}</style>")
        form, widgets = build_form(page)
        gr.Markdown(heading("common.training"))
        button = gr.Button(t("training.train_model"), variant="primary", elem_id="train", interactive=False)
        reason, said = gr.HTML(elem_id="train-reason"), gr.HTML(elem_id="train-errors")
        panel = build_panel(page, watcher)
        widgets |= {"train": button, "reason": reason, **build_live()}
        chosen, compared = build_history()
        optimise = build_optimise(page, panel)
        view = LiveView(page, form, panel, watcher, Remembered("device"), {**widgets, "compared": chosen, **optimise})
        tie_view(view, tab)
        tie_start(view, button, said)
        tie_settings(view, widgets["take"])
        tie_comparison(view, chosen, compared)
        tie_memory(form)
    return tab


def build_form(page: PageContext) -> tuple[TrainForm, dict[str, Any]]:
    """Lay out everything that is decided before a start; return the form and what the live view fills of it."""
    form = TrainForm(page)
    gr.Markdown(heading("training.model_and_data"))
    build_model(form)
    check = gr.Column()
    gr.Markdown(heading("common.settings"))
    device = gr.HTML(elem_id="device")
    preset, about = build_presets()
    build_settings(form)
    gr.Markdown(heading("training.checkpoints_and_memory"))
    build_checkpoints(form)
    build_memory(form)
    build_files(form)
    with check:
        build_check(form)
    tie_presets(form, preset, about)
    return form, {"device": device}


def build_panel(page: PageContext, watcher: Watcher) -> RunPanel:
    """Lay out list, state, log and buttons of the trainings."""

    def facts(run: runs.Run, state: runs.State, language: str) -> str:
        return render.facts(run, state, watcher.look(run), language)

    return build_run_panel(page, "training", start.trainings, facts, render.log)


def build_live() -> dict[str, Any]:
    """Lay out what follows the chosen run."""
    return {
        "messages": gr.HTML(elem_id="messages"),
        "curves": gr.HTML(elem_id="curves"),
        **_unfolded("training.sample_sentences", "samples"),
        "on": gr.HTML(elem_id="what-is-on"),
        "take": gr.Button(t("training.reuse_settings"), elem_id="take-settings", interactive=False),
    }


def _unfolded(title: str, name: str) -> dict[str, Any]:
    with gr.Accordion(t(title), open=True):
        return {name: gr.HTML(elem_id=name)}


def build_history() -> tuple[gr.Dropdown, gr.HTML]:
    """Lay out the comparison of runs."""
    with gr.Accordion(t("training.compare_runs"), open=False, elem_id="comparison"):
        chosen = gr.Dropdown(
            [],
            multiselect=True,
            max_choices=6,
            label=t("training.runs_to_compare"),
            info=t("training.runs_to_compare_hint"),
            interactive=True,
            elem_id="compared-runs",
        )
        shown = gr.HTML(elem_id="compared")
    return chosen, shown


def build_optimise(page: PageContext, panel: RunPanel) -> dict[str, Any]:
    """Lay out the choice of a checkpoint and the button that makes it the finished model."""
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
    def optimise(project: str, run: str | None, step: str | None, half: bool, language: str) -> str:  # noqa: FBT001  # gradio gives values by place
        return finalize.optimise(page, project, run, step, half=half, language=language)

    button.click(
        optimise,
        [page.project, panel.chosen, checkpoint, half, page.language],
        done,
        api_name="optimize_model",
        show_progress="minimal",
        **RAW_INPUTS,
    )
    return {"checkpoint": checkpoint, "optimise": button, "optimise_reason": reason}
