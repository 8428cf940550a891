"""Checks before the start: the dataset, the memory estimate, and a test of one step."""

from collections.abc import Iterator
from typing import Any

import gradio as gr

from utils import runs
from utils.core.errors import AmharicTtsError, RunBusyError
from utils.core.languages import canonical
from utils.system.doctor import Finding, Verdict
from utils.ui import views
from utils.ui.i18n import t, translate
from utils.ui.page import RAW_INPUTS, PageContext, show_errors
from utils.ui.tabs.training import queries, settings
from utils.ui.tabs.training.queries import Result
from utils.ui.tabs.training.settings import settings_error
from utils.ui.tabs.training.settings_form import TrainForm
from utils.ui.views import cell, note, table

LITTLE_HOURS = 2.0  # below it, configs/small_dataset.yaml is recommended
GIB = 2**30


def build_dataset_check(form: TrainForm) -> None:
    """Lay out the check of the dataset."""
    page = form.page
    button = gr.Button(t("training.check_dataset"), elem_id="check-dataset")
    result = gr.HTML(elem_id="dataset-check")

    @show_errors
    def check(project: str, page_language: str, **values: object) -> str:
        place = page.open(project)
        try:
            config = settings.read_settings(values, place)
            answer = queries.ask("check", config=queries.as_json(config), project=str(place.root))
        except AmharicTtsError as error:
            return settings_error(error, page_language)
        return views.findings(dataset_findings(answer, page_language, chosen=config.language), page_language)

    button.click(
        check,
        inputs_kwargs=form.inputs,
        outputs=result,
        api_name="check_dataset",
        show_progress="minimal",
        **RAW_INPUTS,
    )


def build_memory(form: TrainForm) -> None:
    """Lay out the memory estimate and the test of one step."""
    page = form.page
    with gr.Row():
        estimate = gr.Button(t("training.estimate_memory"), elem_id="memory-plan", min_width=160)
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
    memory_test = queries.MemoryTest()

    @show_errors
    def show_estimate(project: str, page_language: str, **values: object) -> str:
        try:
            config = settings.read_settings(values, page.open(project))
            return memory_tables(queries.ask("plan", config=queries.as_json(config)), page_language)
        except AmharicTtsError as error:
            return settings_error(error, page_language)

    @show_errors
    def run_test(project: str, page_language: str, **values: object) -> Iterator[tuple[object, ...]]:
        try:
            config = settings.read_settings(values, page.open(project))
            refuse_during_training(page, project)
            loading = gr.update(value=t("training.loading_torch", page_language), visible=True)
            yield "", loading, gr.update(interactive=True)
            for text in memory_test.run(config):
                yield "", text, gr.skip()
            yield "", gr.skip(), gr.update(interactive=False)
        except AmharicTtsError as error:
            yield settings_error(error, page_language), gr.skip(), gr.update(interactive=False)

    # The full progress indicator on an empty output would cover the buttons below it.
    options: dict[str, Any] = {"inputs_kwargs": form.inputs, "show_progress": "minimal", **RAW_INPUTS}
    estimate.click(show_estimate, outputs=tables, api_name="memory_plan", **options)
    test.click(run_test, outputs=[tables, output, stop], api_name="memory_test", **options)
    stop.click(memory_test.stop, None, None, api_name="stop_memory_test", queue=False)


def refuse_during_training(page: PageContext, project: str) -> None:
    """Refuse to measure memory while a run uses it."""
    if run := runs.active_run(page.open(project), settings.VERB):
        raise RunBusyError(f"{run.name} is running and would be measured too.", hint="Stop it first.")


def dataset_findings(result: Result, language: str, *, chosen: str) -> list[Finding]:
    """Return what is wrong with a dataset.

    Args:
        result: Of the query "check".
        language: Of the page.
        chosen: The language on the form.
    """
    minutes = f"{result['eval_minutes']:.1f}"
    evaluation = t("training.evaluation_summary", language, count=result["eval"], minutes=minutes)
    return [
        _size(result, language),
        Finding(t("training.evaluation_clips", language), "pass", evaluation),
        _counted("training.long_clips", result["too_long"], "training.long_clips_cure", language),
        *_tokens(result, language),
        *_invalid_lines(result, language),
        *_language(result, language, chosen),
    ]


def _size(result: Result, language: str) -> Finding:
    little = result["hours"] < LITTLE_HOURS
    summary = t(
        "training.clips_summary",
        language,
        count=result["train"],
        hours=f"{result['hours']:.2f}",
        longest=f"{result['longest']:.1f}",
    )
    cure = t("training.little_data", language) if little else ""
    return Finding(t("training.training_clips", language), "warn" if little else "pass", summary, cure)


def _tokens(result: Result, language: str) -> list[Finding]:
    title, tokens = t("training.unknown_symbols", language), result["tokens"]
    if tokens is None:
        detail = t("training.vocabulary_missing", language, name=result["missing_vocabulary"])
        return [Finding(title, "warn", detail, t("training.vocabulary_missing_cure", language))]
    verdict: Verdict = "pass"
    detail, cure = t("training.no_unknown_symbols", language, count=tokens["most"]), ""
    if (clips := tokens["lacking"])["count"]:
        verdict, cure = "fail", t("training.unknown_symbols_cure", language)
        symbols = " ".join(tokens["unknown"])
        detail = t("training.symbols_in_clips", language, symbols=symbols, count=clips["count"])
        detail += f": {', '.join(clips['named'])}"
    long = _counted("training.long_texts", tokens["long"], "training.long_texts_cure", language)
    return [Finding(title, verdict, detail, cure), long]


def _invalid_lines(result: Result, language: str) -> list[Finding]:
    if not result["problem_count"]:
        return []
    detail = f"{result['problem_count']}: {' '.join(result['problems'])}"
    cure = t("training.invalid_lines_cure", language)
    return [Finding(t("training.invalid_lines", language), "warn", detail, cure)]


def _language(result: Result, language: str, chosen: str) -> list[Finding]:
    if canonical(result["language"]) == canonical(chosen):
        return []
    detail = t("training.language_mismatch", language, there=result["language"], here=chosen)
    return [Finding(t("training.language", language), "warn", detail, t("training.language_mismatch_cure", language))]


def _counted(title: str, clips: Result, cure: str, language: str) -> Finding:
    if not clips["count"]:
        return Finding(t(title, language), "pass", t("common.none", language))
    detail = f"{clips['count']}: {', '.join(clips['named'])}"
    return Finding(t(title, language), "warn", detail, t(cure, language))


def memory_tables(result: Result, language: str) -> str:
    """Return the memory estimate: whether it fits, its parts, and the presets on this device."""
    available, peak = result["available"], result["peak"]
    fits = peak <= available
    verdict = t("training.it_fits" if fits else "training.it_does_not_fit", language)
    needed = t(
        "training.memory_needed",
        language,
        batch=result["batch"],
        peak=_gib(peak),
        name=result["device"],
        room=_gib(available),
    )
    lead = f"<p><b class='{'pass' if fits else 'fail'}'>{verdict}</b></p>"
    parts = table(
        [t(title, language) for title in ("training.part", "training.size", "training.meaning")],
        [
            (cell(translate(name, language)), cell(_gib(size)), cell(translate(meaning, language)))
            for name, size, meaning in result["parts"]
        ],
    )
    titles = ("training.preset", "training.batch", "training.peak", "training.on_this_device")
    presets = table([t(title, language) for title in titles], [_preset_row(row, language) for row in result["tiers"]])
    return lead + note(needed) + note(_advice(result, language)) + parts + presets


def _advice(result: Result, language: str) -> str:
    tuned = result["tuned"]
    if tuned is None:
        return str(result["advice"])
    return t(
        "training.memory_advice",
        language,
        batch=tuned["batch_size"],
        steps=tuned["grad_acumm"],
        peak=_gib(result["tuned_peak"]),
    )


def _preset_row(row: list[object], language: str) -> tuple[str, ...]:
    name, batch, steps, peak, fits = row
    verdict = t("training.fits" if fits else "training.does_not_fit", language)
    return (
        cell(settings.preset_title(str(name), language)),
        cell(f"{batch} × {steps}"),
        cell(_gib(peak)),
        cell(f"{'✓' if fits else '✗'} {verdict}", classes=f"mark {'pass' if fits else 'fail'}"),
    )


def _gib(size: object) -> str:
    return f"{float(str(size)) / GIB:.2f} GiB"
