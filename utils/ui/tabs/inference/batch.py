"""Batch: many texts into numbered files, in the background."""

from collections.abc import Callable
from typing import Any

import gradio as gr

from utils.core.errors import ConfigError
from utils.runs.background_jobs import BackgroundJob
from utils.ui.i18n import t
from utils.ui.page import RAW_INPUTS
from utils.ui.tabs.inference.context import (
    Context,
    Snapshot,
    downloads,
    job_status,
    settings,
    start_job,
    stop_button,
    uploaded_file,
)
from utils.ui.tabs.inference.takes import FORMATS, format_picker
from utils.workspace import batch_speech
from utils.workspace.batch_speech import SpokenBatch

KIND = "batch"
MAX_ARCHIVES = 5


def build_batch(context: Context) -> dict[str, Any]:
    """Lay out the file and the buttons; return the widgets that the timer updates."""
    gr.Markdown(t("inference.batch_about"))
    with gr.Row():
        file = gr.File(
            label=t("inference.batch_texts"), file_types=[".txt"], file_count="single", height=120, elem_id="lines"
        )
        suffix = format_picker(".wav", "batch-format")
    with gr.Row():
        button = gr.Button(t("inference.speak_batch"), elem_id="speak-lines")
        stop = stop_button(context, KIND)
    status = gr.HTML(elem_id="batch-status")

    def speak_lines(file: object, ending: str, page_language: str, project: str, **values: object) -> str:
        def prepare() -> Callable[[BackgroundJob], object]:
            path = uploaded_file(context, file, t("inference.text_file_missing", page_language))
            lines, config, place = batch_speech.read_lines(path), settings(values), context.project(project)
            if ending not in FORMATS:
                raise ConfigError(f"Unknown audio format {ending}.", hint=f"Choose {', '.join(FORMATS)}.")
            return lambda job: batch_speech.speak_lines(job, context.session, place, lines, ending, config)

        return start_job(context, project, KIND, page_language, prepare)

    button.click(
        speak_lines,
        inputs_kwargs={**context.inputs, "file": file, "ending": suffix},
        outputs=status,
        api_name="speak_lines",
        show_progress="hidden",
        **RAW_INPUTS,
    )
    return {"batch": status, "batch_stop": stop}


def batch_state(context: Context, snapshot: Snapshot) -> dict[str, Any]:
    """Return updates for the running batch and the newest archives."""

    def describe(batch: SpokenBatch) -> str:
        return t("inference.batch_done", snapshot.language, spoken=batch.spoken, failed=batch.failed)

    status, stop = job_status(context.jobs.get(snapshot.name, KIND), snapshot.language, describe)
    archives = sorted((snapshot.project.root / batch_speech.FOLDER).glob("*.zip"), reverse=True)[:MAX_ARCHIVES]
    links = downloads((path, path.name) for path in archives) if archives else ""
    return {"batch": status + links, "batch_stop": stop}
