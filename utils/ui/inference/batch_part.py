"""Subtitles spoken in their time, and many texts into numbered files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from utils.config import SpeechConfig
from utils.errors import AmharicTtsError, ConfigError
from utils.paths import Project
from utils.ui.inference import recording, showing
from utils.ui.inference.errands import Errand
from utils.ui.inference.recording import Done, News, Packed
from utils.ui.inference.room import RAW, Room, Sight, begin, fault, settings, stop_button
from utils.ui.inference.speak_part import Listener, Player, followed
from utils.ui.inference.take_view import ENDINGS
from utils.ui.inference.work import Work
from utils.ui.words import say

BATCH = "batch"


def build_subtitles(room: Room, player: Player) -> None:
    """Lay out the file and the button for subtitles."""
    gr.Markdown("Subtitles are spoken each in its time; what does not fit is said below the take.")
    file = gr.File(
        label="Subtitles", file_types=[".srt", ".vtt", ".ass", ".ssa"], file_count="single", height=120, elem_id="srt"
    )
    button = gr.Button("Speak the subtitles", elem_id="speak-subtitles")

    def speak_subtitles(
        request: gr.Request, file: object, page_language: str, project: str, **values: object
    ) -> Iterator[tuple[Any, ...]]:
        def start(_: Project, config: SpeechConfig) -> tuple[Listener, Work[News]]:
            path = uploaded(room, file, "Give a file with subtitles first.")
            listener = Listener("subtitles", path.stem, config)
            return listener, Work(lambda: recording.dub(room.studio, path, config))

        yield from followed(room, request, project, page_language, values, start)

    spoken = button.click(
        speak_subtitles,
        inputs_kwargs={**room.asked, "file": file},
        outputs=player.outputs,
        api_name="speak_subtitles",
        show_progress="hidden",
        concurrency_limit=8,
        **RAW,
    )
    player.free_after(spoken)


def uploaded(room: Room, file: object, missing: str) -> Path:
    """Return an uploaded file, as gradio names it to handlers that check for themselves."""
    told = file.get("path") if isinstance(file, dict) else file
    if not isinstance(told, str) or not told:
        raise ConfigError(missing)
    path = Path(told).resolve()
    if not path.is_relative_to(room.page.output.resolve()) or not path.is_file():
        raise ConfigError(f"{path.name} was not given to this page.", hint="Give the file again.")
    return path


def build_batch(room: Room) -> dict[str, Any]:
    """Lay out the file and the buttons for many texts; return what the clock fills."""
    gr.Markdown("One text a line: each becomes a numbered file, all together a zip with a list for spreadsheets.")
    with gr.Row():
        file = gr.File(label="Texts, one a line", file_types=[".txt"], file_count="single", height=120, elem_id="lines")
        ending = gr.Dropdown(
            ENDINGS,
            value=".wav",
            label="File format",
            info="WAV and FLAC lose nothing; the others are smaller.",
            interactive=True,
            min_width=160,
        )
    with gr.Row():
        button = gr.Button("Speak all lines", elem_id="speak-lines")
        stop = stop_button(room, BATCH)
    status = gr.HTML(elem_id="batch-status")

    def speak_lines(file: object, ending: str, page_language: str, project: str, **values: object) -> str:
        try:
            path = uploaded(room, file, "Give a text file first, with one text a line.")
            lines, config, place = recording.lines_of(path), settings(values), room.open(project)
        except AmharicTtsError as error:
            return fault(error, page_language)
        if ending not in ENDINGS:
            return showing.told("faults", say("Choose a file format.", page_language))
        task = recording.batch
        return begin(room, project, BATCH, lambda: task(room.studio, place, lines, ending, config), page_language)

    button.click(
        speak_lines,
        inputs_kwargs={**room.asked, "file": file, "ending": ending},
        outputs=status,
        api_name="speak_lines",
        show_progress="hidden",
        **RAW,
    )
    return {"batch": status, "batch_stop": stop}


def batch_state(room: Room, sight: Sight) -> dict[str, Any]:
    """Say how far the lines are, and offer what was packed before."""
    errand = room.errands.look(sight.name, BATCH)
    folder = sight.place.root / recording.BATCHES
    packed = sorted(folder.glob("*.zip"), reverse=True)[:5] if folder.is_dir() else []
    offered = showing.downloads(showing.link(path, path.name) for path in packed) if packed else ""
    going = errand is not None and not errand.is_over
    return {"batch": _told(errand, sight.language) + offered, "batch_stop": {"interactive": going}}


def _told(errand: Errand | None, language: str) -> str:
    if errand is None:
        return ""
    if errand.error:
        return showing.fault(errand.error, language)
    if isinstance(errand.last, Packed):
        values = {"spoken": errand.last.spoken, "faults": errand.last.faults}
        return showing.told(
            "good", say("{spoken} texts are spoken, {faults} could not be; see the list.", language, **values)
        )
    if errand.is_over:
        return showing.told("warnings", say("Stopped; what was finished is packed.", language))
    if isinstance(errand.last, Done):
        values = {"step": errand.last.step, "total": errand.last.total}
        sentence = say("{step} of {total} texts", language, **values)
        return showing.working(f"{sentence} · {errand.work.seconds:.0f} s", errand.last.step, errand.last.total)
    return showing.working(f"{say('Getting ready', language)} · {errand.work.seconds:.0f} s")
