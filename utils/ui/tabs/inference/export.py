"""Taking things away: a model in one file, and the dataset."""

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from utils.core.errors import AmharicTtsError, RunError
from utils.core.paths import Project
from utils.core.storage import make_folder
from utils.runs import child_commands
from utils.ui.i18n import t
from utils.ui.page import RAW_INPUTS
from utils.ui.tabs.inference import render
from utils.ui.tabs.inference.context import Room, Sight, fault
from utils.ui.tabs.inference.job_panel import Heard, begin, state_of, stop_button
from utils.ui.views import note

PACK = "pack"


@dataclass(frozen=True)
class Line:
    """What the packing process printed last."""

    text: str


@dataclass(frozen=True)
class Archive:
    """What was packed."""

    path: Path


def build_downloads(room: Room) -> dict[str, Any]:
    """Lay out the buttons; return what the clock fills."""
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
        stop = stop_button(room, PACK)
    status = gr.HTML(elem_id="pack-status")

    def pack_model(project: str, model: str | None, half: bool, language: str) -> str:  # noqa: FBT001  # gradio gives values by place
        return _begun(
            room, project, language, lambda place: model_task(place, model or "", room.page.output, half=half)
        )

    def pack_dataset(project: str, language: str) -> str:
        return _begun(room, project, language, lambda place: dataset_task(place, project, room.page.output))

    page = room.page
    model.click(
        pack_model,
        [page.project, room.form["model"], half, page.language],
        status,
        api_name="pack_model",
        show_progress="hidden",
        **RAW_INPUTS,
    )
    dataset.click(
        pack_dataset,
        [page.project, page.language],
        status,
        api_name="pack_dataset",
        show_progress="hidden",
        **RAW_INPUTS,
    )
    return {"pack": status, "pack_stop": stop}


def _begun(room: Room, project: str, language: str, make: Any) -> str:  # noqa: ANN401  # makes a task of a project
    try:
        place = room.open(project)
    except AmharicTtsError as error:
        return fault(error, language)
    return begin(room, project, PACK, lambda: make(place), language)


def model_task(place: Project, model: str, output: Path, *, half: bool) -> Iterator[Line | Archive]:
    """Pack a model with all that others need to speak with it."""
    if not model:
        raise RunError("No model is chosen.", hint="Choose one at the top of this tab.")
    target = _target(place, _name_of(Path(model)))
    for line in child_commands.run(child_commands.export_words(model, target, output, half=half)):
        yield Line(line)
    yield Archive(target.with_name(f"{target.name}.zip"))


def dataset_task(place: Project, project: str, output: Path) -> Iterator[Line | Archive]:
    """Pack the clips that were kept, with their lists."""
    target = _target(place, "dataset").with_suffix(".zip")
    for line in child_commands.run(child_commands.dataset_words(project, target, output)):
        yield Line(line)
    yield Archive(target)


def pack_state(room: Room, sight: Sight) -> dict[str, Any]:
    """Say how far the packing is, and offer what was packed before."""
    status, stop = state_of(room.errands.look(sight.name, PACK), sight.language, _heard)
    packed = sorted(_packed(sight.place.exports), reverse=True)[:6]
    shown = [render.link(path, f"{path.name} ({size / 1e6:.1f} MB)") for _, path, size in packed]
    offered = render.downloads(shown) if shown else note(t("inference.no_exports", sight.language))
    return {"pack": status + offered, "pack_stop": stop}


def _packed(folder: Path) -> Iterator[tuple[float, Path, int]]:
    """Yield when each archive was packed, where it lies and its bytes; the System tab may delete one at this moment."""
    for path in folder.glob("*.zip"):
        with contextlib.suppress(FileNotFoundError):
            found = path.stat()
            yield found.st_mtime, path, found.st_size


def _heard(item: object, language: str) -> Heard | None:
    if isinstance(item, Archive):
        return Heard(t("inference.exported", language, name=item.path.name), is_result=True)
    return Heard(item.text) if isinstance(item, Line) else None


def _target(place: Project, name: str) -> Path:
    make_folder(place.exports)
    return place.exports / f"{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def _name_of(model: Path) -> str:
    named = model.parent.name if model.name == "ready" else "-".join((*model.parts[-3:-2], model.name))
    return re.sub(r"[^\w.-]+", "_", named).strip("._") or "model"
