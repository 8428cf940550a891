"""Export: the selected model or the dataset as one archive, made in the background."""

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from utils.core.errors import RunError
from utils.core.paths import Project
from utils.core.storage import make_folder
from utils.runs.background_jobs import BackgroundJob
from utils.runs.processes import read_lines
from utils.ui.i18n import t
from utils.ui.page import RAW_INPUTS
from utils.ui.tabs.inference.context import Context, Snapshot, downloads, job_status, start_job, stop_button
from utils.ui.views import note

KIND = "pack"
MAX_ARCHIVES = 6


def build_export(context: Context) -> dict[str, Any]:
    """Lay out the buttons; return the widgets that the timer updates."""
    gr.Markdown(t("inference.export_about"))
    half = gr.Checkbox(
        value=True,
        label=t("inference.half_precision"),
        info=t("inference.half_precision_hint"),
        elem_id="pack-half",
    )
    with gr.Row():
        model = gr.Button(t("inference.export_model"), elem_id="pack-model")
        dataset = gr.Button(t("inference.export_dataset"), elem_id="pack-dataset")
        stop = stop_button(context, KIND)
    status, page = gr.HTML(elem_id="pack-status"), context.page

    def pack_model(project: str, model: str | None, half: bool, language: str) -> str:  # noqa: FBT001  # by position
        def prepare() -> Callable[[BackgroundJob], Path]:
            if not model:
                raise RunError("No model is selected.", hint="Select one at the top of this tab.")
            target = _target(context.project(project), _model_name(Path(model)))
            arguments = ["export", model, "--out", str(target), "--zip", "--half" if half else "--no-half"]
            return lambda job: _run(job, arguments, page.output, target.with_name(f"{target.name}.zip"))

        return start_job(context, project, KIND, language, prepare)

    def pack_dataset(project: str, language: str) -> str:
        def prepare() -> Callable[[BackgroundJob], Path]:
            target = _target(context.project(project), "dataset").with_suffix(".zip")
            arguments = ["dataset", "export", "zip", str(target), "--project", project]
            return lambda job: _run(job, arguments, page.output, target)

        return start_job(context, project, KIND, language, prepare)

    inputs = [page.project, context.form["model"], half, page.language]
    model.click(pack_model, inputs, status, api_name="pack_model", show_progress="hidden", **RAW_INPUTS)
    inputs = [page.project, page.language]
    dataset.click(pack_dataset, inputs, status, api_name="pack_dataset", show_progress="hidden", **RAW_INPUTS)
    return {"pack": status, "pack_stop": stop}


def _run(job: BackgroundJob, arguments: Sequence[str], output: Path, archive: Path) -> Path:
    """Run a command that makes an archive, with the lines that it prints as progress."""
    for line in read_lines(["-m", "utils", *arguments, "--output", str(output)], check=job.check):
        job.report(message=line)
    return archive


def export_state(context: Context, snapshot: Snapshot) -> dict[str, Any]:
    """Return updates for the running job and the newest archives."""

    def describe(archive: Path) -> str:
        return t("inference.exported", snapshot.language, name=archive.name)

    status, stop = job_status(context.jobs.get(snapshot.name, KIND), snapshot.language, describe)
    archives = sorted(_archives(snapshot.project.exports), reverse=True)[:MAX_ARCHIVES]
    links = downloads((path, f"{path.name} ({size / 1e6:.1f} MB)") for _, path, size in archives)
    return {
        "pack": status + (links if archives else note(t("inference.no_exports", snapshot.language))),
        "pack_stop": stop,
    }


def _archives(folder: Path) -> Iterator[tuple[float, Path, int]]:
    """Yield the time, path and size of each archive."""
    for path in folder.glob("*.zip"):
        with contextlib.suppress(FileNotFoundError):  # the System tab may delete one at this moment
            stat = path.stat()
            yield stat.st_mtime, path, stat.st_size


def _target(project: Project, name: str) -> Path:
    make_folder(project.exports)
    return project.exports / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def _model_name(model: Path) -> str:
    name = model.parent.name if model.name == "ready" else "-".join((*model.parts[-3:-2], model.name))
    return re.sub(r"[^\w.-]+", "_", name).strip("._") or "model"
