"""The sources of a dataset: one drop zone, one box for links and paths, the sample, and the microphone."""

from pathlib import Path
from typing import Any

import gradio as gr

from utils import runs
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
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS, Advanced, PageContext, notify, show_errors
from utils.ui.projects import open_update
from utils.ui.tabs.data import render
from utils.ui.tabs.data.settings_form import VERB, DataForm, read_settings
from utils.ui.views import error_box, message_box, note
from utils.workspace import sample_project, uploads

LISTS = (".csv", ".tsv", ".parquet", ".arrow")  # a dataset, with its audio
KINDS = (uploads.UPLOADS, uploads.LISTS)


def build_sources(form: DataForm, advanced: Advanced) -> None:
    page = form.page
    inputs: Any = build_form(DatasetConfig, only=["inputs"])["inputs"]
    form.widgets["inputs"], inputs.elem_id = inputs, "inputs"
    inputs.unrender()
    with gr.Row():
        with gr.Column(scale=3, min_width=320):
            suffixes = sorted([*MEDIA, *SUBTITLES, *LISTS, ".txt"])
            options: dict[str, Any] = {"file_count": "multiple", "file_types": suffixes, "height": 150}
            files = gr.File(label=t("data.drop"), interactive=True, elem_id="upload-files", **options)
        with gr.Column(scale=2, min_width=280):
            path = gr.Textbox(max_lines=1, elem_id="input-path", **labels("data.path"))
            with gr.Row():
                add = gr.Button(t("data.add"), elem_id="add-input", min_width=100)
                sample = gr.Button(t("data.use_sample"), elem_id="sample-project", min_width=160)
    message, contents = gr.HTML(elem_id="sources-message"), gr.HTML(elem_id="uploads")
    with gr.Accordion(t("data.record"), open=False, elem_id="record") as microphone:
        _build_recording(form, microphone)
    with advanced.section():
        inputs.render()
        with gr.Row(elem_classes="beside"):
            options = {"multiselect": True, "interactive": True, "elem_id": "uploads-to-remove"}
            selected = gr.Dropdown([], **options, **labels("data.files_to_remove"))
            remove = gr.Button(t("data.remove_selected_files"), elem_id="remove-uploads")
    widgets = SourceWidgets(form, message, contents, selected)
    widgets.connect(files, path, add, remove)
    _connect_sample(page, sample, inputs)


def _connect_sample(page: PageContext, button: gr.Button, inputs: gr.Textbox) -> None:
    @show_errors
    def create(language: str) -> Any:  # noqa: ANN401  # gradio's updates have no type
        made = sample_project.create(page.output)
        uploads.add_input(made, uploads.project_input(uploads.UPLOADS))
        if not Store(made.dataset).exists:
            runs.start(VERB, read_settings({"inputs": uploads.join_inputs(uploads.read_inputs(made))}, made), made)
        notify(t("project.sample_ready", language))
        return open_update(page, made.root.name)

    def offer(inputs: str | None) -> Any:  # noqa: ANN401  # gradio's updates have no type
        return gr.update(visible=not (inputs or "").strip())

    button.click(create, page.language, page.project, api_name="sample_project")
    gr.on([page.blocks.load, inputs.change], offer, inputs, button, **PRIVATE_EVENT)


class SourceWidgets:
    """The widgets that show what a project has, and the events that change it."""

    def __init__(self, form: DataForm, message: gr.HTML, contents: gr.HTML, selected: gr.Dropdown) -> None:
        self.form, self.page = form, form.page
        self.outputs: list[Any] = [message, contents, selected, *form.input_widgets]

    def show(self, project: Project, language: str, message: str = "") -> list[Any]:
        """Return what ``outputs`` are filled with."""
        found = {kind: uploads.list_uploads(project, kind) for kind in KINDS}
        shown = render.pairs(uploads.pair_files(found[uploads.UPLOADS]), language) if found[uploads.UPLOADS] else ""
        if found[uploads.LISTS]:
            lists = uploads.preview(str(uploads.uploads_folder(project, uploads.LISTS)))
            shown += render.preview(lists, language)
        choices = [(path.name, f"{kind}/{path.name}") for kind, paths in found.items() for path in paths]
        return [message, shown, gr.update(choices=choices, value=[]), *self.form.show_inputs(project)]

    def reload(self, project: str, language: str) -> list[Any]:
        try:
            return self.show(self.page.open(project), language)[1:]
        except AmharicTtsError as error:  # runs after every change, so it is shown here and not as a pop-up
            return [note(describe_error(error, language)), gr.update(choices=[], value=[]), gr.skip(), gr.skip()]

    @show_errors
    def upload(self, project: str, files: list[str] | None, language: str) -> list[Any]:
        """Store files; with a list among them they are a dataset of their own."""
        opened, files = self.page.open(project), files or []
        kind = uploads.LISTS if any(file.lower().endswith(LISTS) for file in files) else uploads.UPLOADS
        saved = uploads.save_uploads(opened, files, kind)
        added = t("data.files_added", language, count=len(saved.names)) if saved.names else ""
        errors = (describe_error(error, language) for error in saved.errors)
        return [None, *self.show(opened, language, message_box("success", added) + message_box("error", *errors))]

    @show_errors
    def add(self, project: str, text: str, language: str) -> list[Any]:
        """Add a link or a path, and show what is there."""
        try:
            opened, text = self.page.open(project), text.strip()
            if not text:
                raise DataError("Nothing was entered.", hint="Enter a link, a folder or a file.")
            if is_url(text) and not uploads.can_download():
                raise DataError("The package yt-dlp is not installed.", hint="Install it with: pip install yt-dlp.")
            found = render.preview(uploads.preview(text), language)
            uploads.add_input(opened, text)
        except AmharicTtsError as error:
            return [text, error_box(error, language), *[gr.skip()] * (len(self.outputs) - 1)]
        return ["", *self.show(opened, language, message_box("success", t("data.added", language)) + found)]

    @show_errors
    def remove(self, project: str, names: list[str] | None, language: str) -> list[Any]:
        opened = self.page.open(project)
        if not names:
            raise DataError("No file is selected.", hint="Select the files to remove.")
        for kind in KINDS:
            chosen = [name.partition("/")[2] for name in names if name.startswith(f"{kind}/")]
            uploads.remove_uploads(opened, chosen, kind)
        return self.show(opened, language, message_box("success", t("data.files_removed", language, count=len(names))))

    @show_errors
    def save(self, project: str, text: str, shown: str | None) -> list[str]:
        """Store the inputs as edited in their box."""
        opened = self.page.open(project)
        uploads.write_inputs(opened, text, shown)
        return self.form.show_inputs(opened)

    def connect(self, files: gr.File, path: gr.Textbox, add: gr.Button, remove: gr.Button) -> None:
        page, inputs = self.page, self.form.input_widgets
        message, _, selected, box, shown = self.outputs
        reload: dict[str, Any] = {"outputs": self.outputs[1:], **RAW_INPUTS, **PRIVATE_EVENT}
        where = [page.project, page.language]
        gr.on([page.blocks.load, page.project.change, page.language.change], self.reload, where, **reload)
        options: dict[str, Any] = {"show_progress_on": message, "concurrency_limit": None, **RAW_INPUTS}
        changes = [
            files.upload(
                self.upload,
                [page.project, files, page.language],
                [files, *self.outputs],
                api_name="upload_files",
                show_progress_on=message,
            ),
            gr.on(
                [add.click, path.submit],
                self.add,
                [page.project, path, page.language],
                [path, *self.outputs],
                api_name="add_input",
                **options,
            ),
            remove.click(
                self.remove,
                [page.project, selected, page.language],
                self.outputs,
                api_name="remove_uploads",
                **options,
            ),
        ]
        for change in changes:  # read again: an earlier request may be answered later, with the old state
            change.then(self.reload, where, **reload)
        edited: dict[str, Any] = {"api_name": "set_inputs", "show_progress": "hidden", **RAW_INPUTS}
        gr.on([box.blur, box.submit], self.save, [page.project, box, shown], inputs, **edited)


# --- the microphone ---


def _build_recording(form: DataForm, section: gr.Accordion) -> None:
    """Lay out sentence, microphone and buttons; each take is saved as soon as its recording stops."""
    page = form.page
    gr.Markdown(t("data.recording_hint"))
    sentence = gr.Textbox(lines=2, elem_id="sentence", interactive=True, **labels("data.prompt"))
    microphone = gr.Audio(
        sources=["microphone"], type="filepath", label=t("data.microphone"), elem_id="microphone-audio", editable=False
    )
    with gr.Row():
        next_button = gr.Button(t("data.next_sentence"), variant="primary", elem_id="next-sentence", visible=False)
        skip = gr.Button(t("data.skip_sentence"), elem_id="skip-sentence", min_width=150)
        again = gr.Button(t("data.record_again"), elem_id="record-again", visible=False, min_width=150)
    message, progress, skipped = gr.HTML(elem_id="take-message"), gr.HTML(elem_id="takes-progress"), gr.State([])
    outputs: list[Any] = [sentence, microphone, message, progress, next_button, skip, again]

    def state(project: Project, language: str, *, can_continue: bool = False, can_skip: bool = False) -> list[Any]:
        """Return updates of the progress and the buttons."""
        takes = voice_recordings.takes(project)
        shown = render.recording_progress(voice_recordings.progress(takes), language)
        return [shown, *(gr.update(visible=can) for can in (can_continue, can_skip, bool(takes)))]

    def next_sentence(project: Project, passed: list[str], language: str) -> tuple[Any, ...]:
        text = voice_recordings.next_sentence(_read_sentences(project), passed)
        done = "" if text else message_box("success", t("data.all_prompts_read", language))
        return text, None, done, *state(project, language, can_skip=bool(text))

    @show_errors
    def show(project: str, passed: list[str], language: str) -> tuple[Any, ...]:
        try:
            return next_sentence(page.open(project), passed, language)
        except AmharicTtsError as error:  # runs whenever the project changes, so it is shown here
            return "", None, error_box(error, language), "", *[gr.update(visible=False)] * 3

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
    gr.on([section.expand, next_button.click], show, inputs, outputs, api_name="next_sentence", **QUIET_EVENT)
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
