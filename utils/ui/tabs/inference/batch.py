"""Subtitles spoken in their time, and many texts into numbered files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from utils.config import SpeechConfig
from utils.core.errors import AmharicTtsError, ConfigError
from utils.core.paths import Project
from utils.runs.tasks import Work
from utils.ui.i18n import t
from utils.ui.page import RAW_INPUTS
from utils.ui.tabs.inference import render, speech_tasks
from utils.ui.tabs.inference.context import Room, Sight, fault, settings
from utils.ui.tabs.inference.job_panel import Heard, begin, state_of, stop_button
from utils.ui.tabs.inference.playback import Listener
from utils.ui.tabs.inference.speak import Player, followed
from utils.ui.tabs.inference.speech_tasks import Done, News, Packed
from utils.ui.tabs.inference.take_render import ENDINGS, format_picker
from utils.ui.views import message_box

BATCH = "batch"


def build_subtitles(room: Room, player: Player) -> None:
    """Lay out the file and the button for subtitles."""
    gr.Markdown(t("inference.subtitles_about"))
    file = gr.File(
        label=t("common.subtitles"),
        file_types=[".srt", ".vtt", ".ass", ".ssa"],
        file_count="single",
        height=120,
        elem_id="srt",
    )
    button = gr.Button(t("inference.speak_subtitles"), elem_id="speak-subtitles")

    def speak_subtitles(
        request: gr.Request, file: object, page_language: str, project: str, **values: object
    ) -> Iterator[tuple[Any, ...]]:
        def start(_: Project, config: SpeechConfig) -> tuple[Listener, Work[News]]:
            path = uploaded(room, file, "Give a file with subtitles first.")
            listener = Listener("subtitles", path.stem, config)
            return listener, Work(lambda: speech_tasks.dub(room.studio, path, config))

        yield from followed(room, request, project, page_language, values, start)

    spoken = button.click(
        speak_subtitles,
        inputs_kwargs={**room.given, "file": file},
        outputs=player.outputs,
        api_name="speak_subtitles",
        show_progress="hidden",
        concurrency_limit=8,
        **RAW_INPUTS,
    )
    player.free_after(spoken)


def uploaded(room: Room, file: object, missing: str) -> Path:
    """Return an uploaded file, as gradio names it to handlers that check for themselves."""
    named = file.get("path") if isinstance(file, dict) else file
    if not isinstance(named, str) or not named:
        raise ConfigError(missing)
    path = Path(named).resolve()
    if not path.is_relative_to(room.page.output.resolve()) or not path.is_file():
        raise ConfigError(f"{path.name} was not given to this page.", hint="Give the file again.")
    return path


def build_batch(room: Room) -> dict[str, Any]:
    """Lay out the file and the buttons for many texts; return what the clock fills."""
    gr.Markdown(t("inference.batch_about"))
    with gr.Row():
        file = gr.File(
            label=t("inference.batch_texts"), file_types=[".txt"], file_count="single", height=120, elem_id="lines"
        )
        ending = format_picker(".wav", "batch-format")
    with gr.Row():
        button = gr.Button(t("inference.speak_batch"), elem_id="speak-lines")
        stop = stop_button(room, BATCH)
    status = gr.HTML(elem_id="batch-status")

    def speak_lines(file: object, ending: str, page_language: str, project: str, **values: object) -> str:
        try:
            path = uploaded(room, file, "Give a text file first, with one text a line.")
            lines, config, place = speech_tasks.lines_of(path), settings(values), room.open(project)
        except AmharicTtsError as error:
            return fault(error, page_language)
        if ending not in ENDINGS:
            return message_box("error", t("inference.choose_format", page_language))
        task = speech_tasks.batch
        return begin(room, project, BATCH, lambda: task(room.studio, place, lines, ending, config), page_language)

    button.click(
        speak_lines,
        inputs_kwargs={**room.given, "file": file, "ending": ending},
        outputs=status,
        api_name="speak_lines",
        show_progress="hidden",
        **RAW_INPUTS,
    )
    return {"batch": status, "batch_stop": stop}


def batch_state(room: Room, sight: Sight) -> dict[str, Any]:
    """Say how far the lines are, and offer what was packed before."""
    errand = room.errands.look(sight.name, BATCH)
    shown, stop = state_of(errand, sight.language, _heard)
    folder = sight.place.root / speech_tasks.BATCHES
    packed = sorted(folder.glob("*.zip"), reverse=True)[:5] if folder.is_dir() else []
    offered = render.downloads(render.link(path, path.name) for path in packed) if packed else ""
    return {"batch": shown + offered, "batch_stop": stop}


def _heard(item: object, language: str) -> Heard | None:
    if isinstance(item, Packed):
        sentence = "inference.batch_done"
        return Heard(t(sentence, language, spoken=item.spoken, faults=item.faults), is_result=True)
    if isinstance(item, Done):
        return Heard(t("inference.batch_progress", language, step=item.step, total=item.total), item.step, item.total)
    return None
