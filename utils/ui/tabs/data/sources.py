"""The sub-tabs of the sources: each ends in a place that Step 1 reads, and shows at once what it found there."""

from collections.abc import Callable, Mapping
from typing import Any

import gradio as gr
from gradio.events import Dependency

from utils.config import DatasetConfig
from utils.core.addresses import is_url
from utils.core.errors import AmharicTtsError, DataError
from utils.dataset.sources import MEDIA
from utils.dataset.subtitle_formats import SUFFIXES as SUBTITLES
from utils.ui import error_text
from utils.ui.form import build_form
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, PageContext, show_errors
from utils.ui.tabs.data import render
from utils.ui.tabs.data.microphone import build_recording
from utils.ui.tabs.data.settings_form import DataForm
from utils.ui.views import error_box, message_box, note
from utils.workspace import uploads


def build_sources(form: DataForm) -> None:
    """Lay out one sub-tab for each kind of source, and below them the places that Step 1 reads."""
    form.widgets["inputs"] = build_form(DatasetConfig, only=["inputs"])["inputs"]
    form.widgets["inputs"].elem_id = "inputs"
    form.widgets["inputs"].unrender()  # type: ignore[no-untyped-call]  # gradio's; it is shown below the sources
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
            build_folder(form)
        with gr.Tab(t("data.link"), id="link"):
            build_link(form)
        with gr.Tab(t("data.microphone"), id="microphone") as microphone:
            build_recording(form, microphone)
        with gr.Tab(t("data.existing_dataset"), id="existing"):
            build_existing(form)
    build_kept(form, {"upload_files": files, "upload_media": media, "upload_subtitles": subtitles}, uploads.UPLOADS)
    build_places(form)


def build_kept(form: DataForm, widgets: Mapping[str, gr.File], kind: str) -> None:
    """Show what was uploaded, with its pairs, and let it be removed."""
    said, listed = gr.HTML(elem_id=f"{kind}-said"), gr.HTML(elem_id=kind)
    with gr.Accordion(t("data.remove_files"), open=False):
        doomed = gr.Dropdown(
            [],
            multiselect=True,
            label=t("data.files_to_remove"),
            info=t("data.files_to_remove_hint"),
            interactive=True,
            elem_id=f"{kind}-doomed",
        )
        remove = gr.Button(t("data.remove_selected_files"), elem_id=f"{kind}-remove")
    _tie_uploads(form, widgets, said, listed, doomed, kind)
    _tie_removal(form, doomed, remove, said, listed, kind)


def build_folder(form: DataForm) -> None:
    """Name a folder or file of this computer."""
    named = gr.Textbox(
        label=t("data.folder_path"),
        info=t("data.folder_hint"),
        max_lines=1,
        elem_id="folder-path",
    )
    _tie_place(form, named, "folder", _plain)


def build_link(form: DataForm) -> None:
    """Name an address."""
    named = gr.Textbox(
        label=t("data.url"),
        info=t("data.url_hint"),
        max_lines=1,
        elem_id="link-address",
    )
    lacking = gr.HTML(elem_id="link-lacking")
    page = form.page

    def tell_what_lacks(language: str) -> str:
        if uploads.can_download():
            return ""
        sentence = "data.yt_dlp_missing"
        return message_box("error", t(sentence, language))

    gr.on([page.blocks.load, page.language.change], tell_what_lacks, page.language, lacking, **PRIVATE_EVENT)
    _tie_place(form, named, "link", _fetched)


def build_existing(form: DataForm) -> None:
    """Name or upload a dataset that somebody made already."""
    gr.Markdown(t("data.import_formats"))
    named = gr.Textbox(
        label=t("data.import_path"),
        info=t("data.import_path_hint"),
        max_lines=1,
        elem_id="existing-path",
    )
    _tie_place(form, named, "existing", _plain)
    with gr.Accordion(t("data.upload_list"), open=False):
        chosen = _upload("data.upload_list_files", [".csv", ".tsv", ".parquet", *sorted(MEDIA)], "upload-list")
        build_kept(form, {"upload_list": chosen}, uploads.LISTS)


def build_places(form: DataForm) -> None:
    """Show what Step 1 reads; it is kept in the project and can be edited."""
    widget, page = form.widgets["inputs"], form.page
    widget.render()  # type: ignore[no-untyped-call]  # gradio's

    @show_errors
    def keep(project: str, text: str, seen: str | None) -> list[str]:
        place = page.open(project)
        uploads.write_inputs(place, text, seen)
        return form.listed(place)

    gr.on(
        [page.blocks.load, page.project.change], form.renewed, page.project, form.places, **RAW_INPUTS, **PRIVATE_EVENT
    )
    gr.on(
        [widget.blur, widget.submit],  # type: ignore[attr-defined]
        keep,
        [page.project, *form.places],
        form.places,
        api_name="set_places",
        show_progress="hidden",
        **RAW_INPUTS,
    )


def _upload(label: str, endings: list[str], name: str) -> gr.File:
    return gr.File(
        label=t(label), file_count="multiple", file_types=endings, height=140, elem_id=name, interactive=True
    )


def show_kept(page: PageContext, project: str, kind: str, language: str) -> tuple[str, Any]:
    """Show the uploads of a project with their pairs, and offer them for removal."""
    try:
        kept = uploads.list_uploads(page.open(project), kind)
        if kind == uploads.LISTS and kept:
            shown = render.looked(uploads.preview(str(uploads.uploads_folder(page.open(project), kind))), language)
        else:
            shown = render.pairs(uploads.pair_files(kept), language) if kept else note(t("data.no_files", language))
    except AmharicTtsError as error:  # asked at every change: it stays in its place
        return note(error_text.describe(error, language)), gr.update(choices=[], value=[])
    return shown, gr.update(choices=[path.name for path in kept], value=[])


def _tie_uploads(
    form: DataForm, widgets: Mapping[str, gr.File], said: gr.HTML, listed: gr.HTML, doomed: gr.Dropdown, kind: str
) -> None:
    page = form.page

    @show_errors
    def keep(project: str, files: list[str] | None, language: str) -> tuple[Any, ...]:
        place = page.open(project)
        kept = uploads.save_uploads(place, files or [], kind)
        taken = t("data.files_added", language, count=len(kept.names)) if kept.names else ""
        sentences = message_box("success", taken) + message_box(
            "error", *(error_text.describe(error, language) for error in kept.errors)
        )
        return None, sentences, *show_kept(page, project, kind, language), *form.listed(place)

    def show(project: str, language: str) -> tuple[str, Any]:
        return show_kept(page, project, kind, language)

    for name, widget in widgets.items():
        outputs = [widget, said, listed, doomed, *form.places]
        kept = widget.upload(keep, [page.project, widget, page.language], outputs, api_name=name, show_progress_on=said)
        _renew(form, kept, listed, doomed, kind)
    gr.on(
        [page.blocks.load, page.project.change, page.language.change],
        show,
        [page.project, page.language],
        [listed, doomed],
        **RAW_INPUTS,
        **PRIVATE_EVENT,
    )


def _renew(form: DataForm, done: Dependency, listed: gr.HTML, doomed: gr.Dropdown, kind: str) -> None:
    """Read everything once more after an action: what was asked before may be answered after it, with the old state."""
    page = form.page

    def renew(project: str, language: str) -> tuple[Any, ...]:
        return *show_kept(page, project, kind, language), *form.renewed(project)

    done.then(renew, [page.project, page.language], [listed, doomed, *form.places], **RAW_INPUTS, **PRIVATE_EVENT)


def _tie_removal(
    form: DataForm, doomed: gr.Dropdown, button: gr.Button, said: gr.HTML, listed: gr.HTML, kind: str
) -> None:
    page = form.page

    @show_errors
    def remove(project: str, names: list[str] | None, language: str) -> tuple[Any, ...]:
        place = page.open(project)
        if not names:
            raise DataError("No file is chosen.", hint="Choose the files to remove above the button.")
        uploads.remove_uploads(place, names, kind)
        sentence = message_box("success", t("data.files_removed", language, count=len(names)))
        return sentence, *show_kept(page, project, kind, language), *form.listed(place)

    removed = button.click(
        remove,
        [page.project, doomed, page.language],
        [said, listed, doomed, *form.places],
        api_name=f"remove_{kind}",
        show_progress_on=said,
        **RAW_INPUTS,
    )
    _renew(form, removed, listed, doomed, kind)


def _tie_place(form: DataForm, named: gr.Textbox, name: str, judge: Callable[[str], None]) -> None:
    """Look at a place, show what it holds, and add it to what Step 1 reads."""
    page = form.page
    with gr.Row():
        look = gr.Button(t("data.look"), elem_id=f"{name}-look", min_width=120)
        add = gr.Button(t("data.add"), variant="primary", elem_id=f"{name}-add", min_width=120)
    shown = gr.HTML(elem_id=f"{name}-found")

    def examine(place: str, language: str) -> str:
        place = place.strip()
        if not place:
            raise DataError("Nothing is named yet.", hint="Fill in the box above the button.")
        judge(place)
        return render.looked(uploads.preview(place), language)

    @show_errors
    def look_at(place: str, language: str) -> str:
        try:
            return examine(place, language)
        except AmharicTtsError as error:
            return error_box(error, language)

    @show_errors
    def add_place(project: str, place: str, language: str) -> tuple[Any, ...]:
        try:
            found, target = examine(place, language), page.open(project)
            uploads.add_input(target, place)
        except AmharicTtsError as error:
            return gr.skip(), error_box(error, language), *[gr.skip()] * len(form.places)
        added = message_box("success", t("data.read_by_step_1", language))
        return "", added + found, *form.listed(target)

    gr.on([look.click, named.submit], look_at, [named, page.language], shown, api_name=f"look_at_{name}")
    add.click(
        add_place,
        [page.project, named, page.language],
        [named, shown, *form.places],
        api_name=f"add_{name}",
        show_progress_on=shown,
        **RAW_INPUTS,
    ).then(form.renewed, page.project, form.places, **RAW_INPUTS, **PRIVATE_EVENT)


def _plain(place: str) -> None:
    """Accept every place."""


def _fetched(place: str) -> None:
    """Refuse what is no address, and addresses that cannot be fetched here."""
    if not is_url(place):
        raise DataError(f"{place} is no address.", hint="An address begins with https://.")
    if not uploads.can_download():
        raise DataError("The package yt-dlp is not installed.", hint="Install it with: pip install yt-dlp.")
