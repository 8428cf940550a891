"""The voice: one of the model, uploaded clips, a recording, or clips of the dataset."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from utils.config import SEPARATOR, SpeechConfig
from utils.core.errors import AmharicTtsError
from utils.ui.form import info
from utils.ui.i18n import field_title, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS
from utils.ui.tabs.inference.context import Context, player, progress_html, shown_error
from utils.ui.tabs.inference.model import model_voices
from utils.ui.views import message_box
from utils.workspace import reference_clips


def build_voice(context: Context) -> gr.Dropdown:
    """Lay out the picker and the ways to add a voice."""
    picker = gr.Dropdown(
        [(t("inference.model_voice"), "")],
        value="",
        label=field_title(SpeechConfig, "reference"),
        info=info(SpeechConfig, "reference"),
        allow_custom_value=True,
        interactive=True,
        elem_id="reference",
    )
    context.form["reference"] = picker
    facts = gr.HTML(elem_id="voice-facts")
    with gr.Accordion(t("inference.own_voice"), open=False), gr.Row():
        with gr.Column(min_width=260):
            files = gr.File(
                label=t("inference.voice_files"),
                file_count="multiple",
                file_types=["audio"],
                height=150,
                elem_id="voice-clips",
            )
        with gr.Column(min_width=260):
            recording = gr.Audio(
                label=t("inference.record_voice"),
                sources=["microphone"],
                type="filepath",
                elem_id="microphone",
                buttons=[],
            )
        with gr.Column(min_width=260):
            find = gr.Button(t("inference.find_clips"), elem_id="score-clips")
            clips = gr.Dropdown(
                [],
                multiselect=True,
                max_choices=5,
                label=t("inference.dataset_clips"),
                info=t("inference.dataset_clips_hint"),
                interactive=True,
                elem_id="dataset-clips",
            )
            progress = gr.HTML(elem_id="score-progress")
    _bind_uploads(context, files, recording, picker, facts)
    _bind_dataset(context, find, clips, progress, picker)
    _bind_facts(context, picker, facts)
    return picker


def _bind_uploads(context: Context, files: gr.File, recording: gr.Audio, picker: gr.Dropdown, facts: gr.HTML) -> None:
    def add_clips(paths: Sequence[str] | str | None, project: str, language: str) -> tuple[Any, str]:
        try:
            place = context.project(project)
            added = [
                reference_clips.add(place, Path(path)) for path in ([paths] if isinstance(paths, str) else paths or [])
            ]
        except AmharicTtsError as error:
            return gr.skip(), shown_error(error, language)
        if not added:
            return gr.skip(), ""
        own = (t("inference.model_voice", language), "")
        choices = [own, *reference_clips.choices(place, model_voices(context.session))]
        return gr.update(choices=choices, value=reference_clips.join_reference(added)), ""

    inputs = [context.page.project, context.page.language]
    options: dict[str, Any] = {"show_progress": "minimal", "concurrency_limit": None}
    files.upload(add_clips, [files, *inputs], [picker, facts], api_name="use_voice", **options)
    recording.stop_recording(add_clips, [recording, *inputs], [picker, facts], api_visibility="private", **options)


def _bind_dataset(
    context: Context, find: gr.Button, clips: gr.Dropdown, progress: gr.HTML, picker: gr.Dropdown
) -> None:
    def score_clips(project: str, language: str) -> Iterator[tuple[Any, str]]:
        scored: list[reference_clips.ScoredClip] = []
        try:
            candidates = reference_clips.candidates(context.project(project))
            yield gr.skip(), progress_html(t("inference.getting_ready", language))
            for clip in reference_clips.score_clips(candidates):
                scored.append(clip)
                values = {"step": len(scored), "total": len(candidates)}
                sentence = t("inference.scoring_clips", language, **values)
                yield gr.skip(), progress_html(sentence, len(scored), len(candidates))
        except Exception as error:  # noqa: BLE001  # shown
            yield gr.skip(), shown_error(error, language)
            return
        best = sorted(scored, key=lambda clip: -clip.score)
        yield gr.update(choices=[(clip.title, str(clip.path)) for clip in best], value=[]), ""

    def use_clips(paths: Sequence[str] | None) -> Any:  # noqa: ANN401  # an update
        return reference_clips.join_reference(paths) if paths else gr.skip()

    inputs = [context.page.project, context.page.language]
    find.click(score_clips, inputs, [clips, progress], api_name="score_clips", show_progress="hidden")
    clips.change(use_clips, clips, picker, **RAW_INPUTS, **PRIVATE_EVENT)


def _bind_facts(context: Context, picker: gr.Dropdown, facts: gr.HTML) -> None:
    """Play the selected clips and show how good they are."""

    def describe_voice(reference: str | None, language: str) -> Iterator[str]:
        paths = [Path(part.strip()) for part in (reference or "").split(SEPARATOR) if part.strip()]
        files = [path for path in paths if path.is_absolute() and path.is_file()]
        players = [player(path, path.name) if path.is_relative_to(context.page.output) else "" for path in files]
        yield "".join(players)
        try:
            facts = [message_box("success", f"{path.name}: {reference_clips.describe(path)}") for path in files]
        except AmharicTtsError as error:
            yield shown_error(error, language)
            return
        if files:
            yield "".join(html for pair in zip(players, facts, strict=True) for html in pair)

    options: dict[str, Any] = {
        "show_progress": "hidden",
        "concurrency_limit": 2,
        "trigger_mode": "always_last",
        **RAW_INPUTS,
    }
    picker.change(describe_voice, [picker, context.page.language], facts, api_visibility="private", **options)
