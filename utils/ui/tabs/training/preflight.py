"""Checks before the start: the dataset, the disk space, the memory estimate, and a test of one step."""

import math
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from utils import runs
from utils.config import TrainConfig
from utils.core.errors import AmharicTtsError, RunBusyError
from utils.core.languages import canonical
from utils.core.paths import Project
from utils.dataset import metadata
from utils.system.doctor import Finding, Verdict
from utils.ui import views
from utils.ui.i18n import describe_error, t, translate
from utils.ui.page import QUIET_EVENT, RAW_INPUTS, show_errors
from utils.ui.tabs.training import queries, settings
from utils.ui.tabs.training.queries import PresetPeak, Result
from utils.ui.tabs.training.settings import TrainForm, settings_error
from utils.ui.views import cell, note, table
from utils.xtts.files import TINY

LITTLE_HOURS = 2.0  # below it, configs/small_dataset.yaml is recommended

HALF, WIDE = 2, 4  # bytes of a number in checkpoints and in the resume state
PUBLISHED = 441_018_563  # parameters of XTTS v2's GPT
EMBEDDED = 9_118_662  # of the tiny base model's
MOMENTS = {"adamw": 2 * WIDE, "adamw_8bit": 2, "adafactor": 0}  # bytes per weight


def build_dataset_check(form: TrainForm) -> None:
    button = gr.Button(t("training.check_dataset"), elem_id="check-dataset")
    result = gr.HTML(elem_id="dataset-check")

    def check(project: Project, config: TrainConfig, language: str) -> str:
        checked = queries.ask("check", config=config, project=str(project.root))
        return views.findings(dataset_findings(checked, language, chosen=config.language), language)

    button.click(
        form.handler(check),
        inputs_kwargs=form.inputs,
        outputs=result,
        api_name="check_dataset",
        show_progress="minimal",
        **RAW_INPUTS,
    )


def dataset_findings(result: Result, language: str, *, chosen: str) -> list[Finding]:
    """Return what is wrong with a dataset, from the query "check" and the language on the form."""

    def finding(title: str, detail: str, cure: str = "", verdict: Verdict = "warn") -> Finding:
        return Finding(t(title, language), verdict if cure else "pass", detail, cure and t(cure, language))

    def counted(title: str, clips: Result, cure: str) -> Finding:
        if not clips["count"]:
            return finding(title, t("common.none", language))
        return finding(title, f"{clips['count']}: {', '.join(clips['named'])}", cure)

    def symbols(tokens: Result) -> Finding:
        if not (count := tokens["lacking"]["count"]):
            detail = t("training.no_unknown_symbols", language, count=tokens["most"])
            return finding("training.unknown_symbols", detail)
        detail = t("training.symbols_in_clips", language, symbols=" ".join(tokens["unknown"]), count=count)
        detail += f": {', '.join(tokens['lacking']['named'])}"
        return finding("training.unknown_symbols", detail, "training.unknown_symbols_cure", "fail")

    figures = {"count": result["train"], "hours": f"{result['hours']:.2f}", "longest": f"{result['longest']:.1f}"}
    summary = t("training.clips_summary", language, **figures)
    minutes = f"{result['eval_minutes']:.1f}"
    evaluation = t("training.evaluation_summary", language, count=result["eval"], minutes=minutes)
    findings = [
        finding("training.training_clips", summary, "training.little_data" if result["hours"] < LITTLE_HOURS else ""),
        finding("training.evaluation_clips", evaluation),
        counted("training.long_clips", result["too_long"], "training.long_clips_cure"),
    ]
    if (tokens := result["tokens"]) is None:
        detail = t("training.vocabulary_missing", language, name=result["missing_vocabulary"])
        findings.append(finding("training.unknown_symbols", detail, "training.vocabulary_missing_cure"))
    else:
        findings += [symbols(tokens), counted("training.long_texts", tokens["long"], "training.long_texts_cure")]
    if result["problem_count"]:
        detail = f"{result['problem_count']}: {' '.join(result['problems'])}"
        findings.append(finding("training.invalid_lines", detail, "training.invalid_lines_cure"))
    if canonical(result["language"]) != canonical(chosen):
        detail = t("training.language_mismatch", language, there=result["language"], here=chosen)
        findings.append(finding("training.language", detail, "training.language_mismatch_cure"))
    return findings


def build_forecast(form: TrainForm) -> None:
    """Show the disk space that a run will need and the changed settings, updated at every change of the form."""
    page = form.page
    shown = gr.HTML(elem_id="disk-forecast")

    @show_errors
    def calculate(project: str, page_language: str, **values: object) -> tuple[str, str]:
        changed = note(settings.changed_settings(values, page_language))
        try:
            return note(summary(forecast(values, page.open(project)), page_language)), changed
        except AmharicTtsError as error:  # shown in place: it is calculated at every change
            return note(describe_error(error, page_language)), changed

    changes = [page.project.change, page.language.change, *(widget.change for widget in form.widgets.values())]
    gr.on(
        [page.blocks.load, *changes],
        calculate,
        inputs_kwargs=form.inputs,
        outputs=[shown, form.changed],
        api_name="disk_forecast",
        trigger_mode="always_last",
        **RAW_INPUTS,
        **QUIET_EVENT,
    )


@dataclass(frozen=True)
class Forecast:
    """What a run will write; sizes in bytes."""

    updates: int  # optimizer steps of the run; 0 when the dataset is not known
    saves: int  # checkpoints
    checkpoint: int
    resume: int
    most: int  # at a time
    free: int  # now


def forecast(values: Mapping[str, object], project: Project) -> Forecast:
    """Return an upper bound from the values of the form; frozen weights and adapters need less."""

    def number(name: str, minimum: int = 1) -> int:  # an invalid one counts as the minimum
        value = values.get(name)
        return max(minimum, int(value)) if isinstance(value, int | float) and not isinstance(value, bool) else minimum

    parameters = EMBEDDED if values.get("version") == TINY and not values.get("custom_model") else PUBLISHED
    train_csv = values.get("train_csv") or project.dataset / metadata.FILES["train"]
    clips = count_clips(Path(str(train_csv)))
    updates = math.ceil(clips / (number("batch_size") * number("grad_acumm"))) * number("num_epochs")
    if limit := number("max_steps", 0):
        updates = min(updates, limit)
    saves = math.ceil(updates / number("save_step"))
    kept = min(number("save_n_checkpoints") + 1, max(1, saves)) + 1  # with the best, and one being written
    averages = WIDE if values.get("enable_ema") else 0
    checkpoint = parameters * HALF
    resume = parameters * (WIDE + MOMENTS.get(str(values.get("optimizer")), 2 * WIDE) + averages)
    folder = next(path for path in (project.root, *project.root.absolute().parents) if path.exists())
    free = shutil.disk_usage(folder).free
    return Forecast(updates, saves, checkpoint, resume, kept * checkpoint + 2 * resume, free)


def count_clips(path: Path) -> int:
    """Count the lines of a list below its header; 0 when it does not exist."""
    try:
        with path.open("rb") as file:
            return max(0, sum(1 for line in file if line.strip()) - 1)
    except OSError:
        return 0


def summary(result: Forecast, language: str) -> str:
    """Return the forecast as text, with advice where the disk is too small."""
    sizes = {name: views.gigabytes(getattr(result, name)) for name in ("checkpoint", "resume", "most", "free")}
    key = "training.disk_needed" if result.updates else "training.disk_per_checkpoint"
    text = t(key, language, updates=result.updates, saves=result.saves, **sizes)
    return f"{text} {t('training.disk_full', language)}" if result.most > result.free else text


def build_memory(form: TrainForm) -> None:
    page = form.page
    with gr.Row():
        estimate = gr.Button(t("training.estimate_memory"), elem_id="memory-plan", min_width=160)
        test = gr.Button(t("training.test_step"), elem_id="memory-test", min_width=160)
        stop = gr.Button(t("training.stop_test"), elem_id="stop-memory-test", min_width=160, visible=False)
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
    def show_estimate(project: str, page_language: str, **values: object) -> Iterator[str]:
        try:
            config = settings.read_settings(values, page.open(project))
            result = queries.ask("plan", config=config)
            yield memory_tables(result, [], page_language)
            same = config.version, config.custom_model, config.max_audio_length
            presets = queries.preset_peaks(settings.TIERS, *same)
            yield memory_tables(result, presets, page_language)
        except AmharicTtsError as error:
            yield settings_error(error, page_language)

    @show_errors
    def run_test(project: str, page_language: str, **values: object) -> Iterator[tuple[object, ...]]:
        try:
            opened = page.open(project)
            config = settings.read_settings(values, opened)
            if run := runs.active_run(opened, settings.VERB):
                raise RunBusyError(f"{run.name} is running and would be measured too.", hint="Stop it first.")
            loading = gr.update(value=t("training.loading_torch", page_language), visible=True)
            yield "", loading, gr.update(visible=True)
            for text in memory_test.run(config):
                yield "", text, gr.skip()
            yield "", gr.skip(), gr.update(visible=False)
        except AmharicTtsError as error:
            yield settings_error(error, page_language), gr.skip(), gr.update(visible=False)

    # The full progress indicator on an empty output would cover the buttons below it.
    options: dict[str, Any] = {"inputs_kwargs": form.inputs, "show_progress": "minimal", **RAW_INPUTS}
    estimate.click(show_estimate, outputs=tables, api_name="memory_plan", **options)
    test.click(run_test, outputs=[tables, output, stop], api_name="memory_test", **options)
    stop.click(memory_test.stop, None, None, api_name="stop_memory_test", queue=False)


def memory_tables(result: Result, presets: Iterable[PresetPeak], language: str) -> str:
    """Return the memory estimate: whether it fits, its parts, and the presets on this device, if they are known."""

    def gib(size: float) -> str:
        return f"{size / 2**30:.2f} GiB"

    def titles(*names: str) -> list[str]:
        return [t(name, language) for name in names]

    def preset_row(name: str, batch: int, steps: int, peak: int) -> tuple[str, ...]:
        fits = peak <= result["available"]
        verdict = f"✓ {t('training.fits', language)}" if fits else f"✗ {t('training.does_not_fit', language)}"
        texts = (t(f"preset.{name}.title", language), f"{batch} × {steps}", gib(peak))
        return (*map(cell, texts), cell(verdict, classes=f"mark {'pass' if fits else 'fail'}"))

    peak, available = result["peak"], result["available"]
    fits = peak <= available
    verdict = t("training.it_fits" if fits else "training.it_does_not_fit", language)
    needed = t(
        "training.memory_needed",
        language,
        batch=result["batch"],
        peak=gib(peak),
        name=result["device"],
        room=gib(available),
    )
    tuned = result["tuned"]
    if tuned:
        advice = t("training.memory_advice", language, **tuned | {"peak": gib(tuned["peak"])})
    else:
        advice = result["advice"]
    parts = [
        (cell(translate(name, language)), cell(gib(size)), cell(translate(meaning, language)))
        for name, size, meaning in result["parts"]
    ]
    headings = titles("training.preset", "training.batch", "training.peak", "training.on_this_device")
    rows = [preset_row(*preset) for preset in presets]
    return (
        f"<p><b class='{'pass' if fits else 'fail'}'>{verdict}</b></p>"
        + note(needed)
        + note(advice)
        + table(titles("training.part", "training.size", "training.meaning"), parts)
        + (table(headings, rows) if rows else "")
    )
