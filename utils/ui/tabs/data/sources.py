"""The sub-tabs of the sources; each adds to the inputs that Step 1 reads, and previews them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from utils.config import DatasetConfig
from utils.core.addresses import is_url
from utils.core.errors import AmharicTtsError, DataError
from utils.core.paths import Project
from utils.dataset import prompts, voice_recordings
from utils.dataset.sources import MEDIA
from utils.dataset.store import Store
from utils.dataset.subtitles import SUFFIXES as SUBTITLES
from utils.media import audio
from utils.ui.form import build_form
from utils.ui.i18n import describe_error, labels, t, translate
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS, PageContext, notify, show_errors
from utils.ui.tabs.data import render
from utils.ui.tabs.data.settings_form import DataForm
from utils.ui.views import error_box, message_box, note
from utils.workspace import uploads


def build_sources(form: DataForm) -> None:
    """Lay out a sub-tab for each kind of source, and below them the inputs of Step 1."""
    inputs = form.widgets["inputs"] = build_form(DatasetConfig, only=["inputs"])["inputs"]
    inputs.elem_id = "inputs"
    inputs.unrender()  # type: ignore[no-untyped-call]  # gradio's; it is rendered below the sources
    with gr.Tabs(elem_id="sources"):
        with gr.Tab(t("data.files"), id="files"):
            gr.Markdown(t("data.files_hint"))
            files = _upload("data.media_files", sorted([*MEDIA, *SUBTITLES]), "upload-files")
        with gr.Tab(t("data.subtitles_and_media"), id="subtitles"):
            gr.Markdown(t("data.subtitles_hint"))
            with gr.Row():
                media = _upload("data.media_files", sorted(MEDIA), "upload-media")
                subtitles = _upload("common.subtitles", sorted(SUBTITLES), "upload-subtitles")
        with gr.Tab(t("data.folder"), id="folder"):
            path = gr.Textbox(max_lines=1, elem_id="folder-path", **labels("data.folder_path", "data.folder_hint"))
            _build_add_buttons(form, path, "folder")
        with gr.Tab(t("data.link"), id="link"):
            _build_link(form)
        with gr.Tab(t("data.microphone"), id="microphone") as microphone:
            _build_recording(form, microphone)
        with gr.Tab(t("data.existing_dataset"), id="existing"):
            gr.Markdown(t("data.import_formats"))
            path = gr.Textbox(max_lines=1, elem_id="existing-path", **labels("data.import_path"))
            _build_add_buttons(form, path, "existing")
            with gr.Accordion(t("data.upload_list"), open=False):
                lists = _upload("data.upload_list_files", [".csv", ".tsv", ".parquet", *sorted(MEDIA)], "upload-list")
                _build_uploads(form, uploads.LISTS, {"upload_list": lists})
    upload_widgets = {"upload_files": files, "upload_media": media, "upload_subtitles": subtitles}
    _build_uploads(form, uploads.UPLOADS, upload_widgets)
    inputs.render()  # type: ignore[no-untyped-call]  # gradio's
    _bind_inputs(form)


def _upload(label: str, suffixes: list[str], elem_id: str) -> gr.File:
    return gr.File(
        label=t(label), file_count="multiple", file_types=suffixes, height=140, elem_id=elem_id, interactive=True
    )


def _bind_inputs(form: DataForm) -> None:
    """Show the inputs of Step 1 as an editable text; the project stores them."""
    page = form.page
    widget: Any = form.widgets["inputs"]

    @show_errors
    def save(project: str, text: str, shown: str | None) -> list[str]:
        opened = page.open(project)
        uploads.write_inputs(opened, text, shown)
        return form.show_inputs(opened)

    widgets, events = form.input_widgets, [page.blocks.load, page.project.change]
    gr.on(events, form.reload_inputs, page.project, widgets, **RAW_INPUTS, **PRIVATE_EVENT)
    options: dict[str, Any] = {"api_name": "set_inputs", "show_progress": "hidden", **RAW_INPUTS}
    gr.on([widget.blur, widget.submit], save, [page.project, *widgets], widgets, **options)


# --- paths and URLs ---


def _build_link(form: DataForm) -> None:
    page = form.page
    url = gr.Textbox(max_lines=1, elem_id="link-address", **labels("data.url"))
    missing = gr.HTML(elem_id="link-missing-package")

    def check_package(language: str) -> str:
        return "" if uploads.can_download() else message_box("error", t("data.yt_dlp_missing", language))

    def check_url(url: str) -> None:
        if not is_url(url):
            raise DataError(f"{url} is not a URL.", hint="Enter a URL that starts with http:// or https://.")
        if not uploads.can_download():
            raise DataError("The package yt-dlp is not installed.", hint="Install it with: pip install yt-dlp.")

    gr.on([page.blocks.load, page.language.change], check_package, page.language, missing, **PRIVATE_EVENT)
    _build_add_buttons(form, url, "link", check_url)


def _build_add_buttons(
    form: DataForm, textbox: gr.Textbox, name: str, check: Callable[[str], None] = lambda _text: None
) -> None:
    """Preview an input, and add it to the inputs of Step 1."""
    page = form.page
    with gr.Row():
        preview = gr.Button(t("data.preview_recording"), elem_id=f"{name}-preview", min_width=120)
        add = gr.Button(t("data.add"), variant="primary", elem_id=f"{name}-add", min_width=120)
    contents = gr.HTML(elem_id=f"{name}-contents")

    def render_contents(text: str, language: str) -> str:
        text = text.strip()
        if not text:
            raise DataError("Nothing was entered.", hint="Enter a path or URL above the button.")
        check(text)
        return render.preview(uploads.preview(text), language)

    @show_errors
    def show_contents(text: str, language: str) -> str:
        try:
            return render_contents(text, language)
        except AmharicTtsError as error:
            return error_box(error, language)

    @show_errors
    def add_input(project: str, text: str, language: str) -> dict[Any, Any]:
        try:
            shown, opened = render_contents(text, language), page.open(project)
            uploads.add_input(opened, text)
        except AmharicTtsError as error:
            return {contents: error_box(error, language)}
        added = message_box("success", t("data.read_by_step_1", language))
        return {textbox: "", contents: added + shown, **form.inputs_update(opened)}

    events: list[Any] = [preview.click, textbox.submit]
    gr.on(events, show_contents, [textbox, page.language], contents, api_name=f"preview_{name}")
    inputs, outputs = [page.project, textbox, page.language], [textbox, contents, *form.input_widgets]
    added = add.click(add_input, inputs, outputs, api_name=f"add_{name}", show_progress_on=contents, **RAW_INPUTS)
    added.then(form.reload_inputs, page.project, form.input_widgets, **RAW_INPUTS, **PRIVATE_EVENT)


# --- uploads ---


def _build_uploads(form: DataForm, kind: str, widgets: Mapping[str, gr.File]) -> None:
    """List the uploads of a kind, and remove them; ``widgets`` upload, by the names of their events in the API."""
    page = form.page
    message, files = gr.HTML(elem_id=f"{kind}-message"), gr.HTML(elem_id=kind)
    with gr.Accordion(t("data.remove_files"), open=False):
        selected = gr.Dropdown(
            [], multiselect=True, interactive=True, elem_id=f"{kind}-to-remove", **labels("data.files_to_remove")
        )
        button = gr.Button(t("data.remove_selected_files"), elem_id=f"{kind}-remove")

    def show(project: str, language: str) -> tuple[Any, Any]:
        return show_uploads(page, project, kind, language)

    def reload(project: str, language: str) -> tuple[Any, ...]:
        return *show(project, language), *form.reload_inputs(project)

    @show_errors
    def save(project: str, files: list[str] | None, language: str) -> tuple[Any, ...]:
        opened = page.open(project)
        saved = uploads.save_uploads(opened, files or [], kind)
        added = t("data.files_added", language, count=len(saved.names)) if saved.names else ""
        errors = (describe_error(error, language) for error in saved.errors)
        messages = message_box("success", added) + message_box("error", *errors)
        return None, messages, *show(project, language), *form.show_inputs(opened)

    @show_errors
    def remove(project: str, names: list[str] | None, language: str) -> tuple[Any, ...]:
        opened = page.open(project)
        if not names:
            raise DataError("No file is selected.", hint="Select the files to remove above the button.")
        uploads.remove_uploads(opened, names, kind)
        message = message_box("success", t("data.files_removed", language, count=len(names)))
        return message, *show(project, language), *form.show_inputs(opened)

    lists: list[Any] = [files, selected]
    outputs = [message, *lists, *form.input_widgets]
    then: dict[str, Any] = {"inputs": [page.project, page.language], **RAW_INPUTS, **PRIVATE_EVENT}
    options: dict[str, Any] = {"show_progress_on": message}
    changes = []
    for name, widget in widgets.items():
        inputs = [page.project, widget, page.language]
        changes.append(widget.upload(save, inputs, [widget, *outputs], api_name=name, **options))
    inputs = [page.project, selected, page.language]
    changes.append(button.click(remove, inputs, outputs, api_name=f"remove_{kind}", **options, **RAW_INPUTS))
    for change in changes:  # read again: an earlier request may be answered later, with the old state
        change.then(reload, outputs=[*lists, *form.input_widgets], **then)
    gr.on([page.blocks.load, page.project.change, page.language.change], show, outputs=lists, **then)


def show_uploads(page: PageContext, project: str, kind: str, language: str) -> tuple[str, dict[str, Any]]:
    """Show the uploads of a project with their pairs, and offer them for removal."""
    try:
        opened = page.open(project)
        files = uploads.list_uploads(opened, kind)
        if not files:
            shown = note(t("data.no_files", language))
        elif kind == uploads.LISTS:
            shown = render.preview(uploads.preview(str(uploads.uploads_folder(opened, kind))), language)
        else:
            shown = render.pairs(uploads.pair_files(files), language)
    except AmharicTtsError as error:  # runs after every change, so it is shown here and not as a pop-up
        return note(describe_error(error, language)), gr.update(choices=[], value=[])
    return shown, gr.update(choices=[path.name for path in files], value=[])


# --- the microphone ---


def _build_recording(form: DataForm, tab: gr.Tab) -> None:
    """Lay out sentence, microphone and buttons; each take is saved as soon as its recording stops."""
    page = form.page
    gr.Markdown(t("data.recording_hint"))
    sentence = gr.Textbox(lines=2, elem_id="sentence", interactive=True, **labels("data.prompt"))
    microphone = gr.Audio(
        sources=["microphone"], type="filepath", label=t("data.microphone"), elem_id="microphone-audio", editable=False
    )
    with gr.Row():
        next_button = gr.Button(t("data.next_sentence"), variant="primary", elem_id="next-sentence", interactive=False)
        skip = gr.Button(t("data.skip_sentence"), elem_id="skip-sentence", min_width=150)
        again = gr.Button(t("data.record_again"), elem_id="record-again", interactive=False, min_width=150)
    message, progress, skipped = gr.HTML(elem_id="take-message"), gr.HTML(elem_id="takes-progress"), gr.State([])
    outputs: list[Any] = [sentence, microphone, message, progress, next_button, skip, again]

    def state(project: Project, language: str, *, can_continue: bool = False, can_skip: bool = False) -> list[Any]:
        """Return updates of the progress and the buttons."""
        takes = voice_recordings.takes(project)
        shown = render.recording_progress(voice_recordings.progress(takes), language)
        return [shown, *(gr.update(interactive=can) for can in (can_continue, can_skip, bool(takes)))]

    def next_sentence(project: Project, passed: list[str], language: str) -> tuple[Any, ...]:
        text = voice_recordings.next_sentence(_read_sentences(project), passed)
        done = "" if text else message_box("success", t("data.all_prompts_read", language))
        return text, None, done, *state(project, language, can_skip=bool(text))

    @show_errors
    def show(project: str, passed: list[str], language: str) -> tuple[Any, ...]:
        try:
            return next_sentence(page.open(project), passed, language)
        except AmharicTtsError as error:  # runs whenever the project changes, so it is shown here
            return "", None, error_box(error, language), "", *[gr.update(interactive=False)] * 3

    @show_errors
    def save(project: str, text: str, path: str | None, language: str) -> dict[Any, Any]:
        opened = page.open(project)
        if not path:
            return {message: gr.skip()}
        try:
            rate = audio.probe(Path(path)).rate
            take = voice_recordings.save_take(opened, text, audio.load(path, rate), rate)
            uploads.add_input(opened, uploads.project_input(uploads.TAKES))
        except AmharicTtsError as error:  # the sentence stays for another try
            reason = t("data.take_rejected", language, reason=describe_error(error, language))
            return {microphone: None, message: message_box("error", reason), progress: state(opened, language)[0]}
        saved = t("data.take_saved", language, name=take.path.stem, seconds=f"{take.seconds:.1f}")
        messages = message_box("success", saved) + message_box("warning", translate(take.warning, language))
        shown = dict(zip(outputs[3:], state(opened, language, can_continue=True), strict=True))
        return {message: messages, **shown, **form.inputs_update(opened)}

    @show_errors
    def skip_sentence(project: str, text: str, passed: list[str], language: str) -> tuple[Any, ...]:
        passed = [*passed, text]
        return passed, *next_sentence(page.open(project), passed, language)

    @show_errors
    def undo(project: str, language: str) -> tuple[Any, ...]:
        opened = page.open(project)
        take = voice_recordings.undo_last(opened)
        notify(t("data.take_removed", language, name=take.path.stem))
        return take.text, None, "", *state(opened, language, can_skip=True)

    clicked: dict[str, Any] = {"show_progress_on": message}
    inputs = [page.project, skipped, page.language]
    gr.on([tab.select, next_button.click], show, inputs, outputs, api_name="next_sentence", **QUIET_EVENT)
    gr.on([page.project.change, page.language.change], show, inputs, outputs, **PRIVATE_EVENT)
    saved_to, inputs = [*outputs, *form.input_widgets], [page.project, sentence, microphone, page.language]
    microphone.stop_recording(save, inputs, saved_to, api_name="save_take", **clicked)
    inputs = [page.project, sentence, skipped, page.language]
    skip.click(skip_sentence, inputs, [skipped, *outputs], api_name="skip_sentence", **clicked)
    again.click(undo, [page.project, page.language], outputs, api_name="undo_take", **clicked)


def _read_sentences(project: Project) -> list[str]:
    """Return what need not be read again: takes, and prompts that are clips already."""
    store, shipped = Store(project.dataset), set(prompts.shipped())
    clips = [clip.text for clip in store.clips("status = 'kept'") if clip.text in shipped] if store.exists else []
    return [*clips, *(take.text for take in voice_recordings.takes(project))]
