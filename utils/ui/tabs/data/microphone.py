"""Sentences to read into the microphone: each take is saved as soon as its recording is stopped."""

from pathlib import Path
from typing import Any

import gradio as gr

from utils.core.errors import AmharicTtsError
from utils.core.paths import Project
from utils.dataset import prompts, voice_recordings
from utils.dataset.store import Store
from utils.media import audio
from utils.ui import error_text
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, notify, show_errors
from utils.ui.tabs.data import render
from utils.ui.tabs.data.settings_form import DataForm
from utils.ui.views import error_box, message_box
from utils.workspace import uploads

ALL_READ = "data.all_prompts_read"


def read_before(project: Project) -> list[str]:
    """Return what need not be read again: the takes, and prompted sentences that are clips already."""
    store, shipped = Store(project.dataset), set(prompts.shipped())
    clips = [clip.text for clip in store.clips("status = 'kept'") if clip.text in shipped] if store.exists else []
    return [*clips, *(take.text for take in voice_recordings.takes(project))]


def save(project: Project, sentence: str, path: str) -> voice_recordings.Take:
    """Keep what the browser recorded, and have Step 1 read it."""
    rate = audio.probe(Path(path)).rate
    take = voice_recordings.save_take(project, sentence, audio.load(path, rate), rate)
    uploads.add_input(project, uploads.project_input(uploads.TAKES))
    return take


def build_recording(form: DataForm, tab: gr.Tab) -> None:
    """Lay out sentence, microphone and buttons."""
    page = form.page
    gr.Markdown(t("data.recording_hint"))
    sentence = gr.Textbox(
        label=t("data.prompt"),
        info=t("data.prompt_hint"),
        lines=2,
        elem_id="sentence",
        interactive=True,
    )
    microphone = gr.Audio(
        sources=["microphone"], type="filepath", label=t("data.microphone"), elem_id="microphone-audio", editable=False
    )
    with gr.Row():
        following = gr.Button(t("data.next_sentence"), variant="primary", elem_id="next-sentence", interactive=False)
        skip = gr.Button(t("data.skip_sentence"), elem_id="skip-sentence", min_width=150)
        again = gr.Button(t("data.record_again"), elem_id="read-again", interactive=False, min_width=150)
    said, progress = gr.HTML(elem_id="take-said"), gr.HTML(elem_id="takes-progress")
    skipped = gr.State([])
    outputs: list[Any] = [sentence, microphone, said, progress, following, skip, again]

    def reached(project: Project, language: str) -> str:
        return render.reading(voice_recordings.progress(voice_recordings.takes(project)), language)

    def offered(project: Project, passed: list[str], language: str) -> tuple[Any, ...]:
        """Show the sentence that is read next."""
        text = voice_recordings.next_sentence(read_before(project), passed)
        over = "" if text else message_box("success", t(ALL_READ, language))
        has_takes = bool(voice_recordings.takes(project))
        buttons = [gr.update(interactive=False), gr.update(interactive=bool(text)), gr.update(interactive=has_takes)]
        return text, None, over, reached(project, language), *buttons

    @show_errors
    def show(project: str, passed: list[str], language: str) -> tuple[Any, ...]:
        try:
            return offered(page.open(project), passed, language)
        except AmharicTtsError as error:  # asked whenever the project changes: it stays in its place
            shut = [gr.update(interactive=False)] * 3
            return "", None, error_box(error, language), "", *shut

    @show_errors
    def keep(project: str, text: str, path: str | None, language: str) -> tuple[Any, ...]:
        place = page.open(project)
        if not path:
            return (gr.skip(),) * (len(outputs) + len(form.places))
        try:
            take = save(place, text, path)
        except AmharicTtsError as error:  # nothing was kept; the sentence stays for another try
            why = message_box("error", t("data.take_rejected", language, reason=error_text.describe(error, language)))
            return gr.skip(), None, why, reached(place, language), *[gr.skip()] * (3 + len(form.places))
        saved = t("data.take_saved", language, name=take.path.stem, seconds=f"{take.seconds:.1f}")
        heard = message_box("success", saved) + message_box("warning", error_text.translate(take.warning, language))
        buttons = [gr.update(interactive=True), gr.update(interactive=False), gr.update(interactive=True)]
        return gr.skip(), gr.skip(), heard, reached(place, language), *buttons, *form.listed(place)

    @show_errors
    def pass_over(project: str, text: str, passed: list[str], language: str) -> tuple[Any, ...]:
        passed = [*passed, text]
        return passed, *offered(page.open(project), passed, language)

    @show_errors
    def repeat(project: str, language: str) -> tuple[Any, ...]:
        place = page.open(project)
        take = voice_recordings.undo_last(place)
        notify(t("data.take_removed", language, name=take.path.stem))
        has_takes = gr.update(interactive=bool(voice_recordings.takes(place)))
        buttons = [gr.update(interactive=False), gr.update(interactive=True), has_takes]
        return take.text, None, "", reached(place, language), *buttons

    given = [page.project, skipped, page.language]
    gr.on([tab.select, following.click], show, given, outputs, api_name="next_sentence", **QUIET_EVENT)
    gr.on([page.project.change, page.language.change], show, given, outputs, **PRIVATE_EVENT)
    microphone.stop_recording(
        keep,
        [page.project, sentence, microphone, page.language],
        [*outputs, *form.places],
        api_name="save_take",
        show_progress_on=said,
    )
    skip.click(
        pass_over,
        [page.project, sentence, skipped, page.language],
        [skipped, *outputs],
        api_name="skip_sentence",
        show_progress_on=said,
    )
    again.click(repeat, [page.project, page.language], outputs, api_name="undo_take", show_progress_on=said)
