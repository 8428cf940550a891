"""What takes longer and runs in the background: whole files, comparisons of models, and exports."""

import contextlib
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import gradio as gr

from utils.config.flags import changed_flags
from utils.core.storage import make_folder
from utils.core.wording import describe
from utils.evaluation.report import EvaluationReport, summary
from utils.evaluation.results import EvaluatedUtterance
from utils.studio import batch_speech, command_runs, comparisons
from utils.studio.facts import UsageError
from utils.studio.models import ListedModel, list_models
from utils.ui import views
from utils.ui.i18n import describe_error, t
from utils.ui.page import Panel, PanelRequest
from utils.ui.run_panel import command_status, in_project, stop_action
from utils.ui.tabs.inference.model import model_choices
from utils.ui.tabs.inference.shared import SAMPLES, Context, config, uploaded_file
from utils.ui.tabs.inference.takes import FORMATS, format_field
from utils.ui.views import cell, message_box, note, table

# The commands of the runs that this part starts.
FILE = "speak-file"
COMPARISON = "evaluate"
MODEL = "export"
DATASET = "dataset"
MAX_ARCHIVES = 6  # offered for download


def archives(paths: Iterator[Path]) -> str:
    """Offer the newest archives for download."""
    found = []
    for path in paths:
        with contextlib.suppress(FileNotFoundError):  # the System drawer may delete one at this moment
            found.append((path.stat().st_mtime, path.stat().st_size, path))
    newest = sorted(found, reverse=True)[:MAX_ARCHIVES]
    return views.downloads((path, f"{path.name} ({size / 1e6:.1f} MB)") for _, size, path in newest) if newest else ""


# --- files ---


def build_file(context: Context) -> None:
    """Speak subtitles, each cue at its time, or a text file with one text per line into numbered files."""
    types = [*batch_speech.SUBTITLES, ".txt"]
    file = gr.File(
        label=t("inference.file"),
        file_types=types,
        file_count="single",
        height=120,
        elem_id="spoken-file",
        elem_classes="drop",
    )

    def speak(request: PanelRequest) -> None:
        command_runs.start(FILE, _file_arguments(request), request.project, context.session.make_room)

    def render(request: PanelRequest) -> str:
        row = views.row(format_field(".wav"), views.button("speak", "inference.speak_file"))
        made = archives((request.project.root / batch_speech.FOLDER).glob("*.zip"))
        return note("inference.file_about") + row + command_status(FILE, request) + made

    inputs = {"file": file, **context.inputs}
    Panel(context.page, "file-panel", render, {"speak": speak, **stop_action(FILE)}, reads=inputs)


def _file_arguments(request: PanelRequest) -> list[str]:
    path = uploaded_file(request, "file")
    settings, suffix = config(request.fields), request.text("format")
    if path.suffix.lower() not in batch_speech.SUBTITLES:
        batch_speech.read_lines(path)  # to refuse it at once
    if suffix not in FORMATS:
        raise UsageError("unknown_format", suffix, ", ".join(FORMATS))
    return [str(path), "--format", suffix, *in_project(request), *changed_flags(settings)]


# --- comparisons ---


# Long because it lists the controls of a comparison, with what each does.
def build_compare(context: Context) -> None:
    """Speak the same sentences with several models."""
    page = context.page

    def compare(request: PanelRequest) -> None:
        paths = [path for _, path in model_choices(list_models(page.output)) if request.fields.get(f"model-{path}")]
        settings = config(request.fields)
        folder = comparisons.create_comparison(request.project, paths, request.text("sentences"))
        words = comparisons.evaluate_arguments(paths, folder, settings, page.output)
        command_runs.start(COMPARISON, words, request.project, context.session.make_room)

    def render(request: PanelRequest) -> str:
        models = list_models(page.output)
        boxes = [views.check(f"model-{path}", label) for label, path in model_choices(models)]
        text = views.element("textarea", text="\n".join(SAMPLES), name="sentences", rows=4)
        html = note("inference.models_to_compare_hint") + views.boxes(boxes)
        html += views.field("inference.comparison_sentences", text, "inference.comparison_sentences_hint")
        html += views.row(views.button("compare", "inference.compare"))
        return html + _compared(request, models)

    actions = {"compare": compare, **stop_action(COMPARISON)}
    Panel(page, "compare-panel", render, actions, reads=context.inputs)


def _compared(request: PanelRequest, models: Sequence[ListedModel]) -> str:
    """Show the progress of a new comparison, the selected one, and the choice of another."""
    status, name = command_status(COMPARISON, request, "inference.comparison_ready"), selected(request)
    if not name:
        return status
    choices = [(views.when_of(each), each) for each in comparisons.names(request.project)]
    shown = views.select_field(
        "comparison", "inference.comparison", choices, "inference.comparison_hint", name, data_act="show"
    )
    return status + shown + report_html(comparisons.load_report(request.project, name), checkpoint_titles(models))


def checkpoint_titles(models: Sequence[ListedModel]) -> dict[str, str]:
    """Return what the page calls checkpoints, by the names that ``evaluate`` gives them."""
    return {
        f"{model.run.name} {model.path.name}": views.joined(views.run_title(model.run), views.checkpoint(model.step))
        for model in models
        if model.run
    }


def selected(request: PanelRequest) -> str:
    """Return the name of the selected comparison, else the newest."""
    names = comparisons.names(request.project)
    return request.text("comparison") if request.text("comparison") in names else next(iter(names), "")


def report_html(report: EvaluationReport, titles: Mapping[str, str]) -> str:
    """Show each sentence with a player for each model; a checkpoint has the title of its run, if that still exists."""
    spoken = {(one.text, one.checkpoint): one for one in report.utterances}
    texts = dict.fromkeys(one.text for one in sorted(report.utterances, key=lambda one: one.sentence))
    rows = [
        [text, *(_cell(spoken.get((text, name)), report.folder, name) for name in report.checkpoints)] for text in texts
    ]
    medians: list[str] = [cell("inference.real_time_factor", classes="mark")]
    medians += [_factor(summary(report.of(name))["real_time_factor"]) for name in report.checkpoints]
    names = [titles.get(name, name) for name in report.checkpoints]
    return table(["inference.sentence", *names], [*rows, medians]) + "".join(
        note(describe(each)) for each in report.notes
    )


def _cell(utterance: EvaluatedUtterance | None, folder: Path, name: str) -> str:
    if utterance is None or not utterance.wav:
        return describe_error(utterance.error) if utterance and utterance.error else "–"
    flags = [message_box("warning", flag.text()) for flag in utterance.flags]
    sound = views.hear(folder / utterance.wav, f"{name}: {utterance.text}")
    return views.html_cell(sound + note(_factor(utterance.real_time_factor)) + "".join(flags))


def _factor(value: float | None) -> str:
    return f"{value:.2f}" if value else "–"


# --- exports ---


def build_export(context: Context) -> None:
    """Export the selected model or the dataset as one archive."""
    page = context.page

    def export_model(request: PanelRequest) -> None:
        model = request.text("model")
        if not model:
            raise UsageError("no_model")
        half = "--half" if request.fields.get("half") else "--no-half"
        words = [model, "--out", _target(request, _archive_name(Path(model))), "--zip", half]
        command_runs.start(MODEL, [*words, "--output", str(page.output)], request.project)

    def render(request: PanelRequest) -> str:
        half = views.check("half", "inference.half_precision", checked=True)
        buttons = views.buttons("inference.export_model", "inference.export_dataset")
        html = note("inference.export_about") + views.row(half, buttons)
        html += "".join(command_status(kind, request, "inference.exported") for kind in (MODEL, DATASET))
        return html + (archives(request.project.exports.glob("*.zip")) or note("inference.no_exports"))

    actions = {"export_model": export_model, "export_dataset": _export_dataset, "stop": _stop_exports}
    Panel(page, "export-panel", render, actions, reads={"model": context.model})


def _export_dataset(request: PanelRequest) -> None:
    words = ["export", "zip", f"{_target(request, 'dataset')}.zip", *in_project(request)]
    command_runs.start(DATASET, words, request.project)


def _stop_exports(request: PanelRequest) -> None:
    for kind in (MODEL, DATASET):
        command_runs.stop(kind, request.project)


def _target(request: PanelRequest, name: str) -> str:
    make_folder(request.project.exports)
    return str(request.project.exports / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}")


def _archive_name(model: Path) -> str:
    name = model.parent.name if model.name == "ready" else "-".join((*model.parts[-3:-2], model.name))
    return re.sub(r"[^\w.-]+", "_", name).strip("._") or "model"
