"""Fine-tuning, in the order in which a person works: data, settings, checkpoints, training, the finished model."""

from typing import Any

import gradio as gr

from utils import runs
from utils.ui.page import RAW, Page, handler
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


def build(page: Page) -> gr.Tab:
    """Lay out the tab."""
    watcher = Watcher()
    tab = gr.Tab("Fine-tuning", id="training", elem_id="training-tab")
    with tab:
        gr.HTML(f"<style>{render.CSS}</style>")
        form, widgets = build_form(page)
        gr.Markdown("## Training")
        button = gr.Button("Step 2 - Train Model", variant="primary", elem_id="train", interactive=False)
        reason, said = gr.HTML(elem_id="train-reason"), gr.HTML(elem_id="train-faults")
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


def build_form(page: Page) -> tuple[TrainForm, dict[str, Any]]:
    """Lay out everything that is decided before a start; return the form and what the live view fills of it."""
    form = TrainForm(page)
    gr.Markdown("## Model and data")
    build_model(form)
    check = gr.Column()
    gr.Markdown("## Settings")
    device = gr.HTML(elem_id="device")
    preset, about = build_presets()
    build_settings(form)
    gr.Markdown("## Checkpoints and memory")
    build_checkpoints(form)
    build_memory(form)
    build_files(form)
    with check:
        build_check(form)
    tie_presets(form, preset, about)
    return form, {"device": device}


def build_panel(page: Page, watcher: Watcher) -> RunPanel:
    """Lay out list, state, log and buttons of the trainings."""

    def facts(run: runs.Run, state: runs.State, language: str) -> str:
        return render.facts(run, state, watcher.look(run), language)

    return build_run_panel(page, "training", start.trainings, facts, render.log)


def build_live() -> dict[str, Any]:
    """Lay out what follows the chosen run."""
    return {
        "messages": gr.HTML(elem_id="messages"),
        "curves": gr.HTML(elem_id="curves"),
        **_unfolded("Sentences to listen to", "samples"),
        "on": gr.HTML(elem_id="what-is-on"),
        "take": gr.Button("Take the settings of this run", elem_id="take-settings", interactive=False),
    }


def _unfolded(title: str, name: str) -> dict[str, Any]:
    with gr.Accordion(title, open=True):
        return {name: gr.HTML(elem_id=name)}


def build_history() -> tuple[gr.Dropdown, gr.HTML]:
    """Lay out the comparison of runs."""
    with gr.Accordion("Compare runs", open=False, elem_id="comparison"):
        chosen = gr.Dropdown(
            [],
            multiselect=True,
            max_choices=6,
            label="Runs to compare",
            info="Up to six; settings that are the same in all are left out.",
            interactive=True,
            elem_id="compared-runs",
        )
        shown = gr.HTML(elem_id="compared")
    return chosen, shown


def build_optimise(page: Page, panel: RunPanel) -> dict[str, Any]:
    """Lay out the choice of a checkpoint and the button that makes it the finished model."""
    gr.Markdown("## Finished model")
    with gr.Row():
        checkpoint = gr.Dropdown(
            [],
            label="Checkpoint",
            info="Of the run that is chosen above; ★ marks the one that did best on clips it never learnt from.",
            interactive=True,
            elem_id="checkpoint",
            min_width=280,
        )
        half = gr.Checkbox(
            label="Half precision",
            info="The GPT takes half the disk; it is loaded in full precision again.",
            interactive=True,
            elem_id="half",
            min_width=280,
        )
    button = gr.Button("Step 2.5 - Optimize Model", variant="primary", elem_id="optimize", interactive=False)
    reason, done = gr.HTML(elem_id="optimize-reason"), gr.HTML(elem_id="optimized")

    @handler
    def optimise(project: str, run: str | None, step: str | None, half: bool, language: str) -> str:  # noqa: FBT001  # gradio gives values by place
        return finalize.optimise(page, project, run, step, half=half, language=language)

    button.click(
        optimise,
        [page.project, panel.chosen, checkpoint, half, page.language],
        done,
        api_name="optimize_model",
        show_progress="minimal",
        **RAW,
    )
    return {"checkpoint": checkpoint, "optimise": button, "optimise_reason": reason}
