"""Record sentences with the microphone."""

from pathlib import Path
from typing import Any

import gradio as gr

from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.dataset import prompts, voice_recordings
from utils.dataset.store import Store
from utils.media import audio
from utils.ui.i18n import describe_error, t, translate
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, notify, show_errors
from utils.ui.tabs.data import render
from utils.ui.tabs.data.settings_form import DataForm
from utils.ui.views import error_box, message_box
from utils.workspace import uploads


def read_sentences(project: Project) -> list[str]:
    """Return what need not be read again: takes, and prompts that are clips already."""
    store, shipped = Store(project.dataset), set(prompts.shipped())
    clips = [clip.text for clip in store.clips("status = 'kept'") if clip.text in shipped] if store.exists else []
    return [*clips, *(take.text for take in voice_recordings.takes(project))]


def save_recording(project: Project, sentence: str, path: str) -> voice_recordings.Take:
    """Save what the browser recorded, and add the takes to the inputs."""
    rate = audio.probe(Path(path)).rate
    take = voice_recordings.save_take(project, sentence, audio.load(path, rate), rate)
    uploads.add_input(project, uploads.project_input(uploads.TAKES))
    return take


def _buttons(*, can_continue: bool = False, can_skip: bool = False, can_undo: bool = False) -> list[Any]:
    return [gr.update(interactive=enabled) for enabled in (can_continue, can_skip, can_undo)]


def build_recording(form: DataForm, tab: gr.Tab) -> None:
    """Lay out sentence, microphone and buttons; each take is saved as soon as its recording stops."""
    page = form.page
    gr.Markdown(t("data.recording_hint"))
    sentence = gr.Textbox(
        label=t("data.prompt"), info=t("data.prompt_hint"), lines=2, elem_id="sentence", interactive=True
    )
    microphone = gr.Audio(
        sources=["microphone"], type="filepath", label=t("data.microphone"), elem_id="microphone-audio", editable=False
    )
    with gr.Row():
        next_button = gr.Button(t("data.next_sentence"), variant="primary", elem_id="next-sentence", interactive=False)
        skip = gr.Button(t("data.skip_sentence"), elem_id="skip-sentence", min_width=150)
        again = gr.Button(t("data.record_again"), elem_id="record-again", interactive=False, min_width=150)
    message, progress = gr.HTML(elem_id="take-message"), gr.HTML(elem_id="takes-progress")
    skipped = gr.State([])
    outputs: list[Any] = [sentence, microphone, message, progress, next_button, skip, again]

    def show_progress(project: Project, language: str) -> str:
        return render.reading(voice_recordings.progress(voice_recordings.takes(project)), language)

    def show_next(project: Project, passed: list[str], language: str) -> tuple[Any, ...]:
        text = voice_recordings.next_sentence(read_sentences(project), passed)
        done = "" if text else message_box("success", t("data.all_prompts_read", language))
        has_takes = bool(voice_recordings.takes(project))
        return text, None, done, show_progress(project, language), *_buttons(can_skip=bool(text), can_undo=has_takes)

    @show_errors
    def show(project: str, passed: list[str], language: str) -> tuple[Any, ...]:
        try:
            return show_next(page.open(project), passed, language)
        except AmharicTtsError as error:  # runs whenever the project changes, so it is shown here
            return "", None, error_box(error, language), "", *_buttons()

    @show_errors
    def save(project: str, text: str, path: str | None, language: str) -> tuple[Any, ...]:
        opened = page.open(project)
        if not path:
            return (gr.skip(),) * (len(outputs) + len(form.input_widgets))
        try:
            take = save_recording(opened, text, path)
        except AmharicTtsError as error:  # the sentence stays for another try
            reason = t("data.take_rejected", language, reason=describe_error(error, language))
            unchanged = [gr.skip()] * (3 + len(form.input_widgets))
            return gr.skip(), None, message_box("error", reason), show_progress(opened, language), *unchanged
        saved = t("data.take_saved", language, name=take.path.stem, seconds=f"{take.seconds:.1f}")
        messages = message_box("success", saved) + message_box("warning", translate(take.warning, language))
        shown = (
            gr.skip(),
            gr.skip(),
            messages,
            show_progress(opened, language),
            *_buttons(can_continue=True, can_undo=True),
        )
        return *shown, *form.show_inputs(opened)

    @show_errors
    def skip_sentence(project: str, text: str, passed: list[str], language: str) -> tuple[Any, ...]:
        passed = [*passed, text]
        return passed, *show_next(page.open(project), passed, language)

    @show_errors
    def undo(project: str, language: str) -> tuple[Any, ...]:
        opened = page.open(project)
        take = voice_recordings.undo_last(opened)
        notify(t("data.take_removed", language, name=take.path.stem))
        has_takes = bool(voice_recordings.takes(opened))
        return take.text, None, "", show_progress(opened, language), *_buttons(can_skip=True, can_undo=has_takes)

    inputs = [page.project, skipped, page.language]
    gr.on([tab.select, next_button.click], show, inputs, outputs, api_name="next_sentence", **QUIET_EVENT)
    gr.on([page.project.change, page.language.change], show, inputs, outputs, **PRIVATE_EVENT)
    microphone.stop_recording(
        save,
        [page.project, sentence, microphone, page.language],
        [*outputs, *form.input_widgets],
        api_name="save_take",
        show_progress_on=message,
    )
    skip.click(
        skip_sentence,
        [page.project, sentence, skipped, page.language],
        [skipped, *outputs],
        api_name="skip_sentence",
        show_progress_on=message,
    )
    again.click(undo, [page.project, page.language], outputs, api_name="undo_take", show_progress_on=message)
