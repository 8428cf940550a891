"""Choosing whose voice it is: one of the model, clips of one's own, a recording, clips of the dataset."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from utils.config import SEPARATOR, SpeechConfig
from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.runs.tasks import Work
from utils.ui.form import info
from utils.ui.i18n import field_title, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS
from utils.ui.tabs.inference import render
from utils.ui.tabs.inference.context import Room, fault
from utils.ui.views import message_box
from utils.workspace import reference_clips

SOUNDS = ["audio"]


def build_voice(room: Room) -> gr.Dropdown:
    """Lay out the picker and the ways to fill it."""
    picker = gr.Dropdown(
        [(t("inference.model_voice"), "")],
        value="",
        label=field_title(SpeechConfig, "reference"),
        info=info(SpeechConfig, "reference"),
        allow_custom_value=True,
        interactive=True,
        elem_id="reference",
    )
    room.form["reference"] = picker
    heard = gr.HTML(elem_id="voice-facts")
    with gr.Accordion(t("inference.own_voice"), open=False), gr.Row():
        with gr.Column(min_width=260):
            files = gr.File(
                label=t("inference.voice_files"),
                file_count="multiple",
                file_types=SOUNDS,
                height=150,
                elem_id="voice-clips",
            )
        with gr.Column(min_width=260):
            spoken = gr.Audio(
                label=t("inference.record_voice"),
                sources=["microphone"],
                type="filepath",
                elem_id="microphone",
                buttons=[],
            )
        with gr.Column(min_width=260):
            score = gr.Button(t("inference.find_clips"), elem_id="score-clips")
            clips = gr.Dropdown(
                [],
                multiselect=True,
                max_choices=5,
                label=t("inference.dataset_clips"),
                info=t("inference.dataset_clips_hint"),
                interactive=True,
                elem_id="dataset-clips",
            )
            found = gr.HTML(elem_id="score-progress")
    _tie_files(room, files, spoken, picker, heard)
    _tie_dataset(room, score, clips, found, picker)
    _tie_facts(room, picker, heard)
    return picker


def _tie_files(room: Room, files: gr.File, spoken: gr.Audio, picker: gr.Dropdown, heard: gr.HTML) -> None:
    def keep(paths: Sequence[str] | str | None, project: str, language: str) -> tuple[Any, str]:
        given = [paths] if isinstance(paths, str) else list(paths or [])
        if not given:
            return gr.skip(), ""
        try:
            place = room.open(project)
            kept = [reference_clips.keep(place, Path(path)) for path in given]
        except AmharicTtsError as error:
            return gr.skip(), fault(error, language)
        return _chosen(room, place, kept, language), ""

    given = [room.page.project, room.page.language]
    shown: dict[str, Any] = {"show_progress": "minimal", "concurrency_limit": None}
    files.upload(keep, [files, *given], [picker, heard], api_name="use_voice", **shown)
    spoken.stop_recording(keep, [spoken, *given], [picker, heard], api_visibility="private", **shown)


def _chosen(room: Room, project: Project, paths: Sequence[Path], language: str) -> Any:  # noqa: ANN401  # an update
    own = (t("inference.model_voice", language), "")
    value = reference_clips.reference(paths)
    choices = [own, *reference_clips.choices(project, room.studio.voices())]
    return gr.update(choices=choices, value=value)


def _tie_dataset(room: Room, score: gr.Button, clips: gr.Dropdown, found: gr.HTML, picker: gr.Dropdown) -> None:
    def score_clips(project: str, language: str) -> Iterator[tuple[Any, str]]:
        done: list[reference_clips.Clip] = []
        try:
            waiting = reference_clips.candidates(room.open(project))
            for clip in Work(lambda: reference_clips.scored(waiting)).news():
                done += [clip] if clip else []
                step = t("inference.scoring_clips", language, step=len(done), total=len(waiting))
                yield gr.skip(), render.working(step, len(done), len(waiting))
        except Exception as error:  # noqa: BLE001  # it is shown
            yield gr.skip(), fault(error, language)
            return
        best = sorted(done, key=lambda clip: -clip.total)
        yield gr.update(choices=[(clip.title, str(clip.path)) for clip in best], value=[]), ""

    def take_clips(paths: Sequence[str] | None) -> Any:  # noqa: ANN401  # an update
        return reference_clips.reference(paths) if paths else gr.skip()

    given = [room.page.project, room.page.language]
    score.click(score_clips, given, [clips, found], api_name="score_clips", show_progress="hidden")
    clips.change(take_clips, clips, picker, **RAW_INPUTS, **PRIVATE_EVENT)


def _tie_facts(room: Room, picker: gr.Dropdown, heard: gr.HTML) -> None:
    """Offer the chosen clips to be heard, and say how good they are."""

    def describe(reference: str | None, language: str) -> Iterator[str]:
        paths = [Path(part.strip()) for part in (reference or "").split(SEPARATOR) if part.strip()]
        files = [path for path in paths if path.is_absolute() and path.is_file()]
        players = [render.player(path, path.name) if path.is_relative_to(room.page.output) else "" for path in files]
        yield "".join(players)
        if files:
            try:
                said = [f"{path.name}: {reference_clips.sentence_of(path)}" for path in files]
            except AmharicTtsError as error:
                yield fault(error, language)
                return
            yield "".join(one + message_box("success", text) for one, text in zip(players, said, strict=True))

    picker.change(
        describe,
        [picker, room.page.language],
        heard,
        api_visibility="private",
        show_progress="hidden",
        concurrency_limit=2,
        trigger_mode="always_last",
        **RAW_INPUTS,
    )
