"""The sources of a dataset: a drop zone, a field for links and paths, the sample, and the microphone."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from utils.core.errors import AmharicTtsError
from utils.dataset import prompts, voice_recordings
from utils.dataset.metadata import read_language
from utils.dataset.readers.folder import ARCHIVES, MEDIA
from utils.dataset.store import Store
from utils.dataset.subtitles import SUFFIXES as SUBTITLES
from utils.media import audio
from utils.studio import sample_project, uploads
from utils.studio.facts import InputError
from utils.studio.paths import Project
from utils.ui import views
from utils.ui.html import html
from utils.ui.i18n import describe_error, t
from utils.ui.page import QUEUED_EVENT, PageContext, Panel, PanelRequest, Updates, notify
from utils.ui.projects import choose_project
from utils.ui.tabs.data import render
from utils.ui.tabs.data.settings_form import start
from utils.ui.views import button, error_box, message_box, note, row, text_field

LISTS = ".csv .tsv .json .jsonl .ndjson .list .data .textgrid .eaf .ctm .lab .epub .docx .parquet .arrow".split()
SCRIPT = Path(__file__).with_name("sources.js")


def build_sources(page: PageContext) -> None:
    suffixes = [*MEDIA, *SUBTITLES, *LISTS, *ARCHIVES, ".txt"]  # of what may be in a folder with anything else
    limit = uploads.max_size(page.output)
    limits = f"const SUFFIXES = {json.dumps(sorted(suffixes))}, MAX_SIZE = {limit};"
    script = f"{limits}\n{SCRIPT.read_text(encoding='utf-8')}"
    Panel(page, "data-welcome", _welcome, {})
    files = gr.File(  # of any type: Kaldi's lists have no suffix
        label=t("data.drop"),
        interactive=True,
        file_count="multiple",
        height="100%",
        elem_id="upload-files",
        elem_classes="drop",
    )
    actions = {
        "add": _add,
        "remove": _remove,
        "sample": _use_sample,
        "too_large": lambda request: _too_large(request, limit),
    }
    panel = Panel(page, "sources", _render, actions, [page.project], script=script)

    def upload(files: Sequence[str], *values: Any) -> list[Any]:  # noqa: ANN401  # those of the panel
        request = panel.request(*values)
        return [None, panel.show(request, _upload(request, files))]

    page.on(files.upload, upload, [files, *panel.inputs], [files, panel.html], preprocess=True, **QUEUED_EVENT)


def _render(request: PanelRequest) -> str:
    project = request.project
    entered = text_field("link", "data.path", placeholder=t("data.path_hint"), data_key=request.text("added") or "-")
    buttons = [button("add", "data.add")]
    if _is_new(project):
        buttons.append(button("sample", "data.use_sample", "primary"))
    return row(entered, *buttons) + request.text("_message") + render.sources(project)


def _is_new(project: Project) -> bool:
    """Return whether nothing was added yet, and no dataset was made."""
    return not uploads.read_inputs(project) and not Store(project.dataset).exists


def _welcome(request: PanelRequest) -> str:
    """Say what will appear, while there is nothing."""
    if not _is_new(request.project):
        return ""
    return html("page.html", "empty", "welcome", "data.welcome", "data.welcome_text")


def _upload(request: PanelRequest, files: Sequence[str]) -> Updates:
    """Store files; with a list among them they are a dataset of their own."""
    kind = uploads.LISTS if any(uploads.is_list(Path(file)) for file in files) else uploads.UPLOADS
    saved = uploads.save_uploads(request.project, files, kind)
    added = render.understood(saved.names)
    errors = (describe_error(error) for error in saved.errors)
    return {"_message": message_box("success", added) + message_box("error", *errors)}


def _add(request: PanelRequest) -> Updates:
    """Add a link or a path, and show what is there."""
    text = request.text("link").strip()
    try:
        if not text:
            raise InputError("nothing_entered")
        names = uploads.split_inputs(text)
        spoken = read_language(request.project.dataset)
        looks = (uploads.preview(name, spoken=spoken) for name in names)
        found = "".join(dict.fromkeys(render.preview(look) for look in looks))
        uploads.add_input(request.project, text)
    except AmharicTtsError as error:  # what was entered stays, to be corrected
        return {"_message": error_box(error)}
    return {"_message": message_box("success", render.understood(names)) + found, "added": text}


def _remove(request: PanelRequest) -> Updates:
    kind, name = request.text("kind"), request.text("name")
    if kind:
        uploads.remove_uploads(request.project, [name], kind)
    else:
        uploads.remove_input(request.project, name)
    return {"_message": message_box("success", t("data.source_removed", name=name))}


def _too_large(request: PanelRequest, limit: int) -> Updates:
    """Refuse a file as the browser did, in plain words."""
    return {"_message": error_box(InputError("too_large", request.text("name"), views.gigabytes(limit)))}


def _use_sample(request: PanelRequest) -> Updates:
    made = sample_project.create(request.page.output)
    uploads.add_input(made, uploads.project_input(uploads.UPLOADS))
    if not Store(made.dataset).exists:
        start(made, {})
    notify("project.sample_ready")
    return {request.page.project: choose_project(request.page.output, made.name)}


# --- the microphone ---


def build_recording(page: PageContext, section: gr.Accordion) -> None:
    """Lay out sentence, microphone and buttons; each take is saved as soon as its recording stops."""
    microphone = gr.Audio(
        sources=["microphone"],
        type="filepath",
        label=t("data.microphone"),
        elem_id="microphone-audio",
        editable=False,
        render=False,
    )
    actions = {
        "next": lambda request: {**_next_sentence(request), microphone: None},
        "skip": lambda request: {**_next_sentence(request, request.text("prompt")), microphone: None},
        "undo": lambda request: {**_undo_take(request), microphone: None},
    }
    panel = Panel(page, "recording", _render_recording, actions, [microphone])
    microphone.render()  # type: ignore[no-untyped-call]  # gradio's
    connect_microphone(panel, section, microphone)


def connect_microphone(panel: Panel, section: gr.Accordion, microphone: gr.Audio) -> None:
    """Choose a sentence when the section is opened, and save each recording."""

    def begin(*values: Any) -> str:  # noqa: ANN401  # those of the panel
        request = panel.request(*values)
        return panel.show(request, _next_sentence(request))

    def save(path: str, *values: Any) -> list[Any]:  # noqa: ANN401  # those of the panel
        request = panel.request(*values)
        if not path:
            return [gr.skip()] * 2
        try:
            return [gr.skip(), panel.show(request, _save_take(request, Path(path)))]
        except AmharicTtsError as error:  # the sentence stays for another try
            reason = t("data.take_rejected", reason=describe_error(error))
            return [None, panel.show(request, {"_result": message_box("error", reason)})]

    panel.page.on(section.expand, begin, panel.inputs, panel.html, **QUEUED_EVENT)
    inputs, outputs = [microphone, *panel.inputs], [microphone, panel.html]
    panel.page.on(microphone.stop_recording, save, inputs, outputs, preprocess=True, **QUEUED_EVENT)


def _next_sentence(request: PanelRequest, *skipped_now: str) -> Updates:
    skipped = [*request.fields.get("_skipped", []), *skipped_now]
    prompt = voice_recordings.next_sentence(_read_sentences(request.project), skipped)
    done = "" if prompt else message_box("success", "data.all_prompts_read")
    return {"prompt": prompt, "sentence": prompt, "_is_saved": False, "_result": done, "_skipped": skipped}


def _undo_take(request: PanelRequest) -> Updates:
    take = voice_recordings.undo_last(request.project.recordings)
    notify("data.take_removed", name=take.path.stem)
    return {"prompt": take.text, "_is_saved": False, "_result": ""}


def _save_take(request: PanelRequest, path: Path) -> Updates:
    rate = audio.probe(path).rate
    take = voice_recordings.save_take(
        request.project.recordings, request.text("sentence"), audio.load(path, rate), rate
    )
    uploads.add_input(request.project, uploads.project_input(uploads.TAKES))
    saved = t("data.take_saved", name=take.path.stem, seconds=f"{take.seconds:.1f}")
    warning = message_box("warning", "data.too_loud" if take.is_too_loud else "")
    return {"_is_saved": True, "_result": message_box("success", saved) + warning}


def _render_recording(request: PanelRequest) -> str:
    takes = voice_recordings.takes(request.project.recordings)
    prompt = request.text("prompt")
    sentence = views.text_area("sentence", "data.prompt", "data.prompt_hint", prompt, prompt or "-")
    actions = {"next": not prompt or bool(request.fields.get("_is_saved")), "skip": bool(prompt), "undo": bool(takes)}
    buttons = (
        button(action, f"data.{action}_sentence", "primary" if action == "next" else "")
        for action, is_possible in actions.items()
        if is_possible
    )
    progress = render.recording_progress(voice_recordings.progress(takes))
    return note("data.recording_hint") + sentence + request.text("_result") + row(*buttons) + progress


def _read_sentences(project: Project) -> list[str]:
    """Return what need not be read again: takes, and prompts that are clips already."""
    store, shipped = Store(project.dataset), set(prompts.shipped())
    clips = [clip.text for clip in store.clips(status="kept") if clip.text in shipped] if store.exists else []
    return [*clips, *(take.text for take in voice_recordings.takes(project.recordings))]
