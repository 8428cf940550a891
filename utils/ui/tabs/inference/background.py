"""What takes longer and runs in the background: many texts, comparisons of models, and exports."""

import contextlib
import functools
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import gradio as gr

from utils.core.errors import ConfigError, RunError
from utils.core.storage import make_folder
from utils.evaluation.blind_test import CHOICES, Choice
from utils.evaluation.report import EvaluationReport, summary
from utils.evaluation.results import EvaluatedUtterance
from utils.runs.background_jobs import BackgroundJob
from utils.runs.processes import read_lines
from utils.ui.form import MULTISELECT
from utils.ui.i18n import labels, t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS, show_errors
from utils.ui.tabs.inference.context import (
    OWN_PROGRESS,
    SAMPLES,
    Context,
    Snapshot,
    downloads,
    flag_text,
    progress_html,
    settings,
    uploaded_file,
)
from utils.ui.tabs.inference.model import model_choices
from utils.ui.tabs.inference.takes import FORMATS, format_picker
from utils.ui.views import audio_player, cell, error_box, message_box, note, table
from utils.workspace import batch_speech, comparisons
from utils.workspace.batch_speech import SpokenBatch

BATCH, COMPARISON, EXPORT = "batch", "compare", "pack"  # kinds of jobs; one of each runs at a time
MAX_ARCHIVES = 6  # offered for download
VOTES = ("inference.first_better", "inference.second_better", "inference.equal")


def stop_button(context: Context, kind: str) -> gr.Button:
    button = gr.Button(t("inference.stop"), variant="stop", visible=False, min_width=100, elem_id=f"stop-{kind}")

    def stop(project: str) -> None:
        context.jobs.stop(project, kind)

    button.click(stop, context.page.project, None, api_name=f"stop_{kind}", queue=False, show_progress="hidden")
    return button


def start_job(context: Context, project: str, kind: str, task: Callable[[BackgroundJob], object], language: str) -> str:
    context.jobs.start(project, kind, task)
    return message_box("success", t("inference.job_started", language))


def job_status(
    job: BackgroundJob | None, language: str, describe: Callable[[Any], str]
) -> tuple[str, dict[str, object]]:
    """Show how far a job is or how it ended; return that and the state of its Stop button."""
    if job is None:
        return "", {"visible": False}
    is_running = job.is_running
    if job.error:
        html = error_box(job.error, language)
    elif job.result is not None:
        html = message_box("success", describe(job.result))
    elif not is_running:
        html = message_box("warning", t("inference.stopped", language))
    else:
        message = job.progress.message or t("inference.getting_ready", language)
        html = progress_html(f"{message} · {job.seconds:.0f} s", job.progress.step, job.progress.total)
    return html, {"visible": is_running}


# --- many texts ---


def build_batch(context: Context) -> dict[str, Any]:
    """Speak many texts into numbered files; return the widgets that the timer updates."""
    gr.Markdown(t("inference.batch_about"))
    with gr.Row():
        file = gr.File(
            label=t("inference.batch_texts"), file_types=[".txt"], file_count="single", height=120, elem_id="lines"
        )
        suffix = format_picker(".wav", "batch-format")
    with gr.Row():
        button = gr.Button(t("inference.speak_batch"), elem_id="speak-lines")
        stop = stop_button(context, BATCH)
    status = gr.HTML(elem_id="batch-status")

    @show_errors
    def speak_lines(file: object, ending: str, page_language: str, project: str, **values: object) -> str:
        path = uploaded_file(context, file, t("inference.text_file_missing", page_language))
        lines, config, opened = batch_speech.read_lines(path), settings(values), context.page.open(project)
        if ending not in FORMATS:
            raise ConfigError(f"Unknown audio format {ending}.", hint=f"Choose {', '.join(FORMATS)}.")

        def task(job: BackgroundJob) -> object:
            return batch_speech.speak_lines(job, context.session, opened, lines, ending, config)

        return start_job(context, project, BATCH, task, page_language)

    inputs = {**context.inputs, "file": file, "ending": suffix}
    button.click(speak_lines, inputs_kwargs=inputs, outputs=status, api_name="speak_lines", **OWN_PROGRESS)
    return {"batch": status, "batch_stop": stop}


def batch_state(context: Context, snapshot: Snapshot) -> dict[str, Any]:
    def describe(batch: SpokenBatch) -> str:
        return t("inference.batch_done", snapshot.language, spoken=batch.spoken, failed=batch.failed)

    status, stop = job_status(context.jobs.get(snapshot.name, BATCH), snapshot.language, describe)
    archives = sorted((snapshot.project.root / batch_speech.FOLDER).glob("*.zip"), reverse=True)[:MAX_ARCHIVES]
    links = downloads((path, path.name) for path in archives) if archives else ""
    return {"batch": status + links, "batch_stop": stop}


# --- comparisons ---


def build_compare(context: Context) -> dict[str, Any]:
    """Speak the same sentences with several models; return the widgets that the timer updates."""
    page, texts = context.page, labels("inference.models_to_compare")
    with gr.Row():
        models = gr.Dropdown([], max_choices=comparisons.MAX_MODELS, elem_id="compare-models", **MULTISELECT, **texts)
        text = gr.Textbox(
            "\n".join(SAMPLES),
            lines=4,
            max_lines=12,
            elem_id="compare-text",
            **labels("inference.comparison_sentences"),
        )
    with gr.Row():
        button = gr.Button(t("inference.compare"), elem_id="compare")
        stop = stop_button(context, COMPARISON)
    status = gr.HTML(elem_id="compare-status")
    chosen = gr.Dropdown([], interactive=True, elem_id="comparisons", **labels("inference.comparison"))
    report = gr.HTML(elem_id="compare-table")

    @show_errors
    def compare(models: list[str] | None, sentences: str, page_language: str, project: str, **values: object) -> str:
        opened, config, paths = context.page.open(project), settings(values), list(models or [])

        def task(job: BackgroundJob) -> str:
            return comparisons.compare(job, opened, paths, sentences, config, page.output)

        return start_job(context, project, COMPARISON, task, page_language)

    @show_errors
    def show(project: str, name: str | None, language: str) -> str:
        if not name:
            return note(t("inference.no_comparison", language))
        return report_html(comparisons.load_report(context.page.open(project), name), language)

    inputs = {**context.inputs, "models": models, "sentences": text}
    button.click(compare, inputs_kwargs=inputs, outputs=status, api_name="compare", **OWN_PROGRESS)
    events: list[Any] = [chosen.change, page.language.change]
    shown = [page.project, chosen, page.language]
    gr.on(events, show, shown, report, api_name="show_comparison", **RAW_INPUTS, **QUIET_EVENT)
    with gr.Accordion(t("inference.blind_test"), open=False):
        _build_blind_test(context, chosen)
    return {"compare_models": models, "compare_status": status, "compare_stop": stop, "comparisons": chosen}


def compare_state(context: Context, snapshot: Snapshot, chosen: str | None) -> dict[str, Any]:
    """Return updates for the running comparison and the list of finished ones."""
    job, language = context.jobs.get(snapshot.name, COMPARISON), snapshot.language
    names = comparisons.names(snapshot.project)
    picker: dict[str, Any] = {"choices": names}
    if chosen not in names:
        picker["value"] = job.result if job and job.result in names else next(iter(names), None)
    status, stop = job_status(job, language, lambda _: t("inference.comparison_ready", language))
    return {
        "compare_models": {"choices": model_choices(snapshot.models, language)},
        "compare_status": status,
        "compare_stop": stop,
        "comparisons": picker,
    }


def report_html(report: EvaluationReport, language: str) -> str:
    """Show each sentence with a player for each model."""
    spoken = {(one.text, one.checkpoint): one for one in report.utterances}
    texts = dict.fromkeys(one.text for one in sorted(report.utterances, key=lambda one: one.sentence))
    rows = [
        [cell(text), *(_cell(spoken.get((text, name)), report.folder, name, language) for name in report.checkpoints)]
        for text in texts
    ]
    medians = [cell(t("inference.real_time_factor", language), classes="mark")]
    medians += [cell(_factor(summary(report.of(name))["real_time_factor"])) for name in report.checkpoints]
    titles = [t("inference.sentence", language), *report.checkpoints]
    return table(titles, [*rows, medians]) + "".join(note(text) for text in report.notes)


def _cell(utterance: EvaluatedUtterance | None, folder: Path, name: str, language: str) -> str:
    if utterance is None or not utterance.wav:
        return cell((utterance and utterance.error) or "–")
    flags = [message_box("warning", flag_text(flag.partition(": ")[2], language)) for flag in utterance.flags]
    sound = audio_player(folder / utterance.wav, f"{name}: {utterance.text}")
    return f"<td>{sound}{note(_factor(utterance.real_time_factor))}{''.join(flags)}</td>"


def _factor(value: float | None) -> str:
    return f"{value:.2f}" if value else "–"


def _build_blind_test(context: Context, chosen: gr.Dropdown) -> None:
    """Lay out one pair at a time; the files have names that do not reveal the models."""
    gr.Markdown(t("inference.blind_test_about"))
    voter = gr.Textbox(max_lines=1, elem_id="voter", **labels("common.your_name", "inference.your_name_hint"))
    start = gr.Button(t("inference.next_pair"), elem_id="next-pair")
    text = gr.HTML(elem_id="blind-text")
    with gr.Row():
        first, second = (
            gr.Audio(label=t(f"inference.sample_{number}"), interactive=False, elem_id=f"blind-{number}", buttons=[])
            for number in (1, 2)
        )
    with gr.Row():
        buttons = [
            gr.Button(t(label), visible=False, min_width=120, elem_id=f"vote-{choice}")
            for choice, label in zip(CHOICES, VOTES, strict=True)
        ]
    result, token = gr.HTML(elem_id="tally"), gr.State("")
    outputs = [token, text, first, second, result, *buttons]

    def next_pair(project: str, name: str, voter: str, language: str) -> tuple[Any, ...]:
        disabled = [gr.update(visible=False)] * len(VOTES)
        if not name:
            return "", note(t("inference.compare_models_first", language)), None, None, "", *disabled
        opened = context.page.open(project)
        pair, remaining, total = comparisons.next_pair(opened, name, voter)
        if pair is None:
            done = note(t("inference.all_pairs_judged", language, total=total))
            tally = message_box("success", *map(str, comparisons.tally(opened, name)))
            return "", done, None, None, tally, *disabled
        files = map(str, comparisons.anonymous_files(opened, name, pair))
        title = t("inference.pair_of", language, number=total - remaining + 1, total=total, sentence=pair.text)
        return pair.token, note(title), *files, "", *[gr.update(visible=True)] * len(VOTES)

    def vote(choice: Choice, token: str, project: str, name: str, voter: str, language: str) -> tuple[Any, ...]:
        comparisons.save_vote(context.page.open(project), name, token, choice, voter)
        return next_pair(project, name, voter, language)

    inputs = [context.page.project, chosen, voter, context.page.language]
    start.click(show_errors(next_pair), inputs, outputs, api_name="next_pair", **RAW_INPUTS, **QUIET_EVENT)
    for button, choice in zip(buttons, CHOICES, strict=True):
        handler = show_errors(functools.partial(vote, cast("Choice", choice)))
        button.click(handler, [token, *inputs], outputs, trigger_mode="once", **RAW_INPUTS, **PRIVATE_EVENT)


# --- exports ---


def build_export(context: Context) -> dict[str, Any]:
    """Export the selected model or the dataset as one archive; return the widgets that the timer updates."""
    gr.Markdown(t("inference.export_about"))
    half = gr.Checkbox(value=True, elem_id="pack-half", **labels("inference.half_precision"))
    with gr.Row():
        model = gr.Button(t("inference.export_model"), elem_id="pack-model")
        dataset = gr.Button(t("inference.export_dataset"), elem_id="pack-dataset")
        stop = stop_button(context, EXPORT)
    status, page = gr.HTML(elem_id="pack-status"), context.page

    def new_archive(project: str, name: str) -> Path:
        folder = context.page.open(project).exports
        make_folder(folder)
        return folder / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}.zip"

    def start(project: str, archive: Path, command: Sequence[str], language: str) -> str:
        def task(job: BackgroundJob) -> Path:
            for line in read_lines(["-m", "utils", *command, "--output", str(page.output)], check=job.check):
                job.report(message=line)
            return archive

        return start_job(context, project, EXPORT, task, language)

    @show_errors
    def pack_model(project: str, model: str, half: bool, language: str) -> str:  # noqa: FBT001  # by position
        if not model:
            raise RunError("No model is selected.", hint="Select one at the top of this tab.")
        archive = new_archive(project, _archive_name(Path(model)))
        flags = ["--zip", "--half" if half else "--no-half"]
        return start(project, archive, ["export", model, "--out", str(archive.with_suffix("")), *flags], language)

    @show_errors
    def pack_dataset(project: str, language: str) -> str:
        archive = new_archive(project, "dataset")
        return start(project, archive, ["dataset", "export", "zip", str(archive), "--project", project], language)

    inputs = [page.project, context.form["model"], half, page.language]
    model.click(pack_model, inputs, status, api_name="pack_model", **OWN_PROGRESS)
    dataset.click(pack_dataset, [page.project, page.language], status, api_name="pack_dataset", **OWN_PROGRESS)
    return {"pack": status, "pack_stop": stop}


def export_state(context: Context, snapshot: Snapshot) -> dict[str, Any]:
    language = snapshot.language
    job = context.jobs.get(snapshot.name, EXPORT)
    status, stop = job_status(job, language, lambda archive: t("inference.exported", language, name=archive.name))
    archives = sorted(_archives(snapshot.project.exports), reverse=True)[:MAX_ARCHIVES]
    links = downloads((path, f"{path.name} ({size / 1e6:.1f} MB)") for _, path, size in archives)
    return {"pack": status + (links if archives else note(t("inference.no_exports", language))), "pack_stop": stop}


def _archives(folder: Path) -> Iterator[tuple[float, Path, int]]:
    for path in folder.glob("*.zip"):
        with contextlib.suppress(FileNotFoundError):  # the System drawer may delete one at this moment
            stat = path.stat()
            yield stat.st_mtime, path, stat.st_size


def _archive_name(model: Path) -> str:
    name = model.parent.name if model.name == "ready" else "-".join((*model.parts[-3:-2], model.name))
    return re.sub(r"[^\w.-]+", "_", name).strip("._") or "model"
