"""What is looked at before a start: the dataset, the plan of memory, and one measured step."""

from collections.abc import Iterator
from typing import Any

import gradio as gr

from utils import runs
from utils.core.errors import AmharicTtsError, RunBusyError
from utils.ui.i18n import t
from utils.ui.page import RAW_INPUTS, PageContext, show_errors
from utils.ui.tabs.training import queries, start
from utils.ui.tabs.training.checks import check_table, plan_tables
from utils.ui.tabs.training.settings_form import TrainForm, faulty


def build_check(form: TrainForm) -> None:
    """Look at the dataset on a click."""
    page = form.page
    button = gr.Button(t("training.check_dataset"), elem_id="check-dataset")
    found = gr.HTML(elem_id="dataset-check")

    @show_errors
    def check(project: str, page_language: str, **values: object) -> str:
        place = page.open(project)
        try:
            config = start.complete(values, place)
            answer = queries.ask("check", config=queries.settings(config), project=str(place.root))
        except AmharicTtsError as error:
            return faulty(error, page_language)
        return check_table(answer, page_language, chosen=config.language)

    button.click(
        check,
        inputs_kwargs=form.given,
        outputs=found,
        api_name="check_dataset",
        show_progress="minimal",
        **RAW_INPUTS,
    )


def build_memory(form: TrainForm) -> None:
    """Calculate the memory on a click, and measure one step on another."""
    page = form.page
    with gr.Row():
        plan = gr.Button(t("training.estimate_memory"), elem_id="memory-plan", min_width=160)
        test = gr.Button(t("training.test_step"), elem_id="memory-test", min_width=160)
        stop = gr.Button(t("training.stop_test"), elem_id="stop-memory-test", min_width=160, interactive=False)
    tables = gr.HTML(elem_id="plan-tables")
    output = gr.Textbox(
        label=t("training.test_step_output"),
        lines=8,
        max_lines=16,
        interactive=False,
        visible=False,
        elem_id="memory-test-output",
    )
    trial = queries.Trial()

    @show_errors
    def calculate(project: str, page_language: str, **values: object) -> str:
        try:
            config = start.complete(values, page.open(project))
            return plan_tables(queries.ask("plan", config=queries.settings(config)), page_language)
        except AmharicTtsError as error:
            return faulty(error, page_language)

    @show_errors
    def measure(project: str, page_language: str, **values: object) -> Iterator[tuple[object, ...]]:
        try:
            config = start.complete(values, page.open(project))
            refuse_beside_a_run(page, project)
            yield (
                "",
                gr.update(value=t("training.loading_torch", page_language), visible=True),
                gr.update(interactive=True),
            )
            for text in trial.run(config):
                yield "", text, gr.skip()
            yield "", gr.skip(), gr.update(interactive=False)
        except AmharicTtsError as error:
            yield faulty(error, page_language), gr.skip(), gr.update(interactive=False)

    # A full sign of progress on what is still empty would lie over the buttons below it.
    usual: dict[str, Any] = {"inputs_kwargs": form.given, "show_progress": "minimal", **RAW_INPUTS}
    plan.click(calculate, outputs=tables, api_name="memory_plan", **usual)
    test.click(measure, outputs=[tables, output, stop], api_name="memory_test", **usual)
    stop.click(trial.stop, None, None, api_name="stop_memory_test", queue=False)


def refuse_beside_a_run(page: PageContext, project: str) -> None:
    """Refuse to measure while a training takes the memory."""
    if run := runs.active_run(page.open(project), start.VERB):
        raise RunBusyError(f"{run.name} is at work and would be measured too.", hint="Stop it first.")
