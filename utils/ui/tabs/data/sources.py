"""The sub-tabs of the sources; each adds to the inputs that Step 1 reads, and previews them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.events import Dependency

from utils.config import DatasetConfig
from utils.core.addresses import is_url
from utils.core.errors import AmharicTtsError, DataError
from utils.dataset.sources import MEDIA
from utils.dataset.subtitle_formats import SUFFIXES as SUBTITLES
from utils.ui.form import build_form
from utils.ui.i18n import describe_error, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, show_errors
from utils.ui.tabs.data import render
from utils.ui.tabs.data.microphone import build_recording
from utils.ui.tabs.data.settings_form import DataForm
from utils.ui.views import error_box, message_box, note
from utils.workspace import uploads


def build_sources(form: DataForm) -> None:
    """Lay out a sub-tab for each kind of source, and below them the inputs of Step 1."""
    form.widgets["inputs"] = build_form(DatasetConfig, only=["inputs"])["inputs"]
    form.widgets["inputs"].elem_id = "inputs"
    form.widgets["inputs"].unrender()  # type: ignore[no-untyped-call]  # gradio's; it is rendered below the sources
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
            path = _textbox("data.folder_path", "data.folder_hint", "folder-path")
            _build_add_buttons(form, path, "folder")
        with gr.Tab(t("data.link"), id="link"):
            _build_link(form)
        with gr.Tab(t("data.microphone"), id="microphone") as microphone:
            build_recording(form, microphone)
        with gr.Tab(t("data.existing_dataset"), id="existing"):
            _build_existing(form)
    upload_widgets = {"upload_files": files, "upload_media": media, "upload_subtitles": subtitles}
    UploadList(form, uploads.UPLOADS).connect(upload_widgets)
    _build_inputs(form)


def _upload(label: str, suffixes: list[str], elem_id: str) -> gr.File:
    return gr.File(
        label=t(label), file_count="multiple", file_types=suffixes, height=140, elem_id=elem_id, interactive=True
    )


def _textbox(label: str, info: str, elem_id: str) -> gr.Textbox:
    return gr.Textbox(label=t(label), info=t(info), max_lines=1, elem_id=elem_id)


def _build_link(form: DataForm) -> None:
    url = _textbox("data.url", "data.url_hint", "link-address")
    missing = gr.HTML(elem_id="link-missing-package")
    page = form.page

    def check_package(language: str) -> str:
        return "" if uploads.can_download() else message_box("error", t("data.yt_dlp_missing", language))

    gr.on([page.blocks.load, page.language.change], check_package, page.language, missing, **PRIVATE_EVENT)
    _build_add_buttons(form, url, "link", _check_url)


def _build_existing(form: DataForm) -> None:
    gr.Markdown(t("data.import_formats"))
    path = _textbox("data.import_path", "data.import_path_hint", "existing-path")
    _build_add_buttons(form, path, "existing")
    with gr.Accordion(t("data.upload_list"), open=False):
        files = _upload("data.upload_list_files", [".csv", ".tsv", ".parquet", *sorted(MEDIA)], "upload-list")
        UploadList(form, uploads.LISTS).connect({"upload_list": files})


def _build_inputs(form: DataForm) -> None:
    """Show the inputs of Step 1 as an editable text; the project stores them."""
    widget, page = form.widgets["inputs"], form.page
    widget.render()  # type: ignore[no-untyped-call]  # gradio's

    @show_errors
    def save(project: str, text: str, shown: str | None) -> list[str]:
        opened = page.open(project)
        uploads.write_inputs(opened, text, shown)
        return form.show_inputs(opened)

    gr.on(
        [page.blocks.load, page.project.change],
        form.reload_inputs,
        page.project,
        form.input_widgets,
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )
    gr.on(
        [widget.blur, widget.submit],  # type: ignore[attr-defined]
        save,
        [page.project, *form.input_widgets],
        form.input_widgets,
        api_name="set_inputs",
        show_progress="hidden",
        **RAW_INPUTS,
    )


def _check_url(url: str) -> None:
    if not is_url(url):
        raise DataError(f"{url} is not a URL.", hint="Enter a URL that starts with http:// or https://.")
    if not uploads.can_download():
        raise DataError("The package yt-dlp is not installed.", hint="Install it with: pip install yt-dlp.")


def _build_add_buttons(
    form: DataForm, textbox: gr.Textbox, name: str, check: Callable[[str], None] = lambda _text: None
) -> None:
    """Preview an input, and add it to the inputs of Step 1."""
    page = form.page
    with gr.Row():
        preview = gr.Button(t("data.look"), elem_id=f"{name}-preview", min_width=120)
        add = gr.Button(t("data.add"), variant="primary", elem_id=f"{name}-add", min_width=120)
    contents = gr.HTML(elem_id=f"{name}-contents")

    def render_contents(text: str, language: str) -> str:
        text = text.strip()
        if not text:
            raise DataError("Nothing was entered.", hint="Enter a path or URL above the button.")
        check(text)
        return render.looked(uploads.preview(text), language)

    @show_errors
    def show_contents(text: str, language: str) -> str:
        try:
            return render_contents(text, language)
        except AmharicTtsError as error:
            return error_box(error, language)

    @show_errors
    def add_input(project: str, text: str, language: str) -> tuple[Any, ...]:
        try:
            shown, opened = render_contents(text, language), page.open(project)
            uploads.add_input(opened, text)
        except AmharicTtsError as error:
            return gr.skip(), error_box(error, language), *[gr.skip()] * len(form.input_widgets)
        added = message_box("success", t("data.read_by_step_1", language))
        return "", added + shown, *form.show_inputs(opened)

    gr.on(
        [preview.click, textbox.submit],
        show_contents,
        [textbox, page.language],
        contents,
        api_name=f"preview_{name}",
    )
    add.click(
        add_input,
        [page.project, textbox, page.language],
        [textbox, contents, *form.input_widgets],
        api_name=f"add_{name}",
        show_progress_on=contents,
        **RAW_INPUTS,
    ).then(form.reload_inputs, page.project, form.input_widgets, **RAW_INPUTS, **PRIVATE_EVENT)


def show_uploads(page: PageContext, project: str, kind: str, language: str) -> tuple[str, Any]:
    """Show the uploads of a project with their pairs, and offer them for removal."""
    try:
        opened = page.open(project)
        files = uploads.list_uploads(opened, kind)
        if not files:
            shown = note(t("data.no_files", language))
        elif kind == uploads.LISTS:
            shown = render.looked(uploads.preview(str(uploads.uploads_folder(opened, kind))), language)
        else:
            shown = render.pairs(uploads.pair_files(files), language)
    except AmharicTtsError as error:  # runs after every change, so it is shown here and not as a pop-up
        return note(describe_error(error, language)), gr.update(choices=[], value=[])
    return shown, gr.update(choices=[path.name for path in files], value=[])


@dataclass
class UploadList:
    """The uploads of a kind with their pairs, and a way to remove them."""

    form: DataForm
    kind: str

    def __post_init__(self) -> None:
        self.message, self.files = gr.HTML(elem_id=f"{self.kind}-message"), gr.HTML(elem_id=self.kind)
        with gr.Accordion(t("data.remove_files"), open=False):
            self.selected = gr.Dropdown(
                [],
                multiselect=True,
                label=t("data.files_to_remove"),
                info=t("data.files_to_remove_hint"),
                interactive=True,
                elem_id=f"{self.kind}-to-remove",
            )
            self.button = gr.Button(t("data.remove_selected_files"), elem_id=f"{self.kind}-remove")

    def connect(self, widgets: Mapping[str, gr.File]) -> None:
        """Save what the widgets upload; their keys are the names of the API."""
        form, page, kind = self.form, self.form.page, self.kind

        @show_errors
        def save(project: str, files: list[str] | None, language: str) -> tuple[Any, ...]:
            opened = page.open(project)
            saved = uploads.save_uploads(opened, files or [], kind)
            added = t("data.files_added", language, count=len(saved.names)) if saved.names else ""
            errors = (describe_error(error, language) for error in saved.errors)
            messages = message_box("success", added) + message_box("error", *errors)
            return None, messages, *show_uploads(page, project, kind, language), *form.show_inputs(opened)

        @show_errors
        def remove(project: str, names: list[str] | None, language: str) -> tuple[Any, ...]:
            opened = page.open(project)
            if not names:
                raise DataError("No file is selected.", hint="Select the files to remove above the button.")
            uploads.remove_uploads(opened, names, kind)
            message = message_box("success", t("data.files_removed", language, count=len(names)))
            return message, *show_uploads(page, project, kind, language), *form.show_inputs(opened)

        outputs = [self.message, self.files, self.selected, *form.input_widgets]
        for name, widget in widgets.items():
            inputs = [page.project, widget, page.language]
            self._then_reload(
                widget.upload(save, inputs, [widget, *outputs], api_name=name, show_progress_on=self.message)
            )
        self._then_reload(
            self.button.click(
                remove,
                [page.project, self.selected, page.language],
                outputs,
                api_name=f"remove_{kind}",
                show_progress_on=self.message,
                **RAW_INPUTS,
            )
        )
        gr.on(
            [page.blocks.load, page.project.change, page.language.change],
            lambda project, language: show_uploads(page, project, kind, language),
            [page.project, page.language],
            [self.files, self.selected],
            **RAW_INPUTS,
            **PRIVATE_EVENT,
        )

    def _then_reload(self, event: Dependency) -> None:
        """Read everything again after a change: an earlier request may be answered later, with the old state."""
        form, page = self.form, self.form.page

        def reload(project: str, language: str) -> tuple[Any, ...]:
            return *show_uploads(page, project, self.kind, language), *form.reload_inputs(project)

        outputs = [self.files, self.selected, *form.input_widgets]
        event.then(reload, [page.project, page.language], outputs, **RAW_INPUTS, **PRIVATE_EVENT)
