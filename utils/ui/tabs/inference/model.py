"""The model and the voice: select them, load the model, see what is in memory, add and save a voice."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from utils.config import split_values
from utils.core import wording
from utils.core.errors import AmharicTtsError
from utils.core.events import as_number
from utils.core.languages import find
from utils.core.wording import describe
from utils.dataset.store import Store
from utils.speech.session import ActiveModel, SpeechSession
from utils.studio import reference_clips
from utils.studio.models import ListedModel, list_models, preferred_model, tokenizer_of
from utils.studio.paths import Project
from utils.ui import views
from utils.ui.html import html
from utils.ui.i18n import describe_error, t
from utils.ui.page import Panel, PanelRequest, Updates, notify
from utils.ui.tabs.inference.shared import Context, config
from utils.ui.views import cards, message_box, note
from utils.xtts.checkpoints import read_scores
from utils.xtts.files import REFERENCE_FILE, read_about
from utils.xtts.tokenizer import Tokenizer

KINDS = {"ready": "inference.finished_model", "checkpoint": "inference.checkpoint", "base": "inference.base_model"}
MAX_CLIPS = 5  # of a voice


def build_model(context: Context) -> None:
    """Show why the model cannot speak and, under Advanced, what is in memory, with buttons to load and unload it."""
    session = context.session

    def load(request: PanelRequest) -> None:
        for _ in context.submit(lambda _: iter(()), config(request.fields)).events():
            pass

    def render(request: PanelRequest) -> str:
        model = request.text("model")
        reason, preview = _reading(model)
        can = {
            "load": bool(model) and not session.loading,
            "unload": session.loaded is not None and not session.loading and not session.users,
        }
        buttons = views.buttons(*(f"inference.{action}" for action in can if can[action]))
        card = views.element("div", model_html(session, model, preview) + views.row(buttons), id="model-card")
        return note(reason) + views.details("inference.model_in_memory", card, "model-details")

    actions = {"load": load, "unload": lambda _: session.unload()}
    Panel(context.page, "model-panel", render, actions, reads=context.inputs)


def _reading(model: str) -> tuple[str, str]:
    """Return why a model cannot be read, and how it reads text; one of them is empty."""
    if not model:
        return t("inference.no_model"), ""
    try:
        return "", describe_reading(tokenizer_of(model))
    except AmharicTtsError as error:
        return describe_error(error), ""


def build_card(context: Context) -> None:
    """Show who will speak: the model, what it learned from, and its reference to listen to."""

    def render(request: PanelRequest) -> str:
        chosen = request.text("model")
        model = next((item for item in list_models(request.page.output) if str(item.path) == chosen), None)
        if model is None:
            return ""
        reference = model.path / REFERENCE_FILE
        sound = views.hear(reference, "data.play") if reference.is_file() else ""
        return html("speech.html", "voice", model_name(model), _facts(model, request.page.output), sound)

    Panel(context.page, "voice-card", render, {}, reads={"model": context.model})


def _facts(model: ListedModel, output: Path) -> str:
    """Return what a model is, and how long and how well it learned."""
    about = read_about(model.path)
    step = about.get("step")
    parts = [t(KINDS[model.kind]), views.checkpoint(step)]
    if model.path.is_relative_to(output):
        project = Project(output / model.path.relative_to(output).parts[0])
        store = Store(project.dataset)
        parts += [wording.time(store.totals()["train"].seconds)] if store.exists else []
        similarity = read_scores(project.runs / str(about.get("run")), step or 0).get("similarity")
        parts += [t("inference.similarity", value=f"{similarity:.2f}")] if similarity is not None else []
    return views.joined(*parts, views.checkpoint(None, model.eval_loss))


def picker_state(
    context: Context, project: Project, models: list[ListedModel], model: str, seen: Mapping[str, Any]
) -> dict[str, Any]:
    """Return updates for the choices of models and voices.

    A model that the page selected itself gives way to one of the open project, and that one to the finished model.
    """
    picker: dict[str, Any] = {"choices": model_choices(models)}
    if not model or seen.get("model", {}).get("value") == model:
        model = picker["value"] = preferred_model(models, project.root, model)
    loaded = context.session.loaded
    voices = reference_clips.choices(project, loaded.synthesizer.voices() if loaded else ())
    choices = [(t("inference.model_voice"), ""), *voices]
    return {"model": picker, "speak": {"visible": bool(model)}, "reference": {"choices": choices}}


def model_choices(models: list[ListedModel]) -> list[tuple[str, str]]:
    return [(_title(model), str(model.path)) for model in models]


def _title(model: ListedModel) -> str:
    loss = views.checkpoint(None, model.eval_loss) if model.kind == "checkpoint" else ""
    return f"{model_name(model)}{' ★' if model.is_best else ''} · {loss or t(KINDS[model.kind])}"


def model_name(model: ListedModel) -> str:
    """Return the name of a model; a checkpoint has that of its run."""
    if model.run is None:
        return model.name
    return f"{model.run.project.name}: {views.joined(views.run_title(model.run), views.checkpoint(model.step))}"


def model_html(session: SpeechSession, selected: str, preview: str) -> str:
    """Show what is in memory, and how the selected model reads text."""
    parts, loaded = [], session.loaded
    if session.loading:
        parts.append(views.progress("inference.loading_model"))
    if loaded:
        parts.append(_card(loaded, session.users))
    elif not session.loading:
        parts.append(note("inference.no_model_loaded"))
    is_other = loaded is None or loaded.choice[0] != selected
    if loaded and selected and is_other:
        parts.append(note("inference.other_model_selected"))
    if preview and is_other:
        parts.append(cards({"inference.chosen_model_reads": preview}))
    return "".join(parts)


def _card(loaded: ActiveModel, users: int) -> str:
    model = loaded.synthesizer.model
    loss = as_number(model.about.get("eval_loss"))
    rows = {
        "inference.in_memory": views.joined(model.name, *_size(loaded)),
        "inference.computes_on": _precision(loaded),
        "inference.input": describe_reading(model.tokenizer),
        "inference.speaks": ", ".join(find(code).native_name or code for code in model.languages),
        "common.training": views.joined(
            str(model.about.get("run") or ""), views.checkpoint(model.about.get("step"), loss)
        ),
        "common.in_use": t("inference.users_now", count=users) if users else "",
    }
    known = {name: value for name, value in rows.items() if value}
    return cards(known) + message_box("warning", *(describe(notice) for notice in model.notices), aloud=False)


def _size(loaded: ActiveModel) -> tuple[str, str]:
    """Return how much memory a model takes, and how long it took to load."""
    memory = f"{loaded.gib:.2f} GiB"
    if loaded.gpu_gib > 0.005:
        memory += f" + {loaded.gpu_gib:.2f} GiB ({t('common.gpu')})"
    return memory, t("inference.loaded_in", seconds=f"{loaded.seconds:.1f}")


def _precision(loaded: ActiveModel) -> str:
    """Return where each part of a model computes, in which precision, and why."""
    used = loaded.synthesizer.precision
    gpt = f"GPT {used.gpt}: {describe(used.gpt_reason)}"
    return views.joined(
        str(used.device), gpt, f"{t('inference.sound')} {used.vocoder}: {describe(used.vocoder_reason)}"
    )


def describe_reading(tokenizer: Tokenizer) -> str:
    """Describe how a model reads its added language, from its metadata."""
    settings = tokenizer.settings
    if settings is None:
        return t("inference.published_languages")
    backend = f"{t('inference.amharic_g2p')}: {t(f'inference.backend_{settings.backend}')}"
    return views.joined(
        find(settings.language).native_name,
        t(f"inference.mode_{settings.mode}"),
        backend if settings.mode != "fidel" else "",
        t("inference.lexicon_size", count=len(settings.overrides)) if settings.overrides else "",
    )


# --- the voice ---


# Long because it lists the ways to a voice, each with what it does.
def build_voice(context: Context) -> None:
    """Lay out what is known of the selected voice, and how to make and save another one."""
    page, picker = context.page, context.reference

    def add_clips(paths: Sequence[str] | str, project: str) -> Any:  # noqa: ANN401  # an update
        opened = page.open(project)
        files = [paths] if isinstance(paths, str) and paths else paths
        return reference_clips.join_reference([reference_clips.add(opened, Path(path)) for path in files]) or gr.skip()

    def use_clips(request: PanelRequest) -> Updates:
        scored = enumerate(scored_clips(request))
        chosen = [clip.path for number, clip in scored if request.fields.get(f"clip-{number}")]
        return {picker: reference_clips.join_reference(chosen[:MAX_CLIPS])} if chosen else {}

    def save(request: PanelRequest) -> Updates:
        reference = reference_clips.save_voice(request.project, request.text("voice"), request.text("reference"))
        notify("inference.voice_saved", name=request.text("voice"))
        return {picker: reference}

    actions = {"find_clips": find_clips, "use_clips": use_clips, "save_voice": save}
    reads = {"reference": picker}
    with gr.Accordion(t("inference.own_voice"), open=False):
        files, recording = voice_inputs()
        Panel(page, "voice-panel", voice_html, actions, [picker], reads)
    options: dict[str, Any] = {"show_progress": "minimal", "concurrency_limit": None, "preprocess": True}
    page.on(files.upload, add_clips, [files, page.project], picker, api_name="use_voice", **options)
    recorded = [recording, page.project]
    page.on(recording.stop_recording, add_clips, recorded, picker, api_visibility="private", **options)


def find_clips(request: PanelRequest) -> Updates:
    """Score the clips of the dataset as a voice."""
    scored = reference_clips.score_clips(reference_clips.candidates(request.project))
    return {"_scored": sorted(scored, key=lambda clip: -clip.score)}


def voice_inputs() -> tuple[gr.File, gr.Audio]:
    """Return the places for files of a voice and for a recording of it."""
    files = gr.File(
        label=t("inference.voice_files"),
        file_types=["audio"],
        file_count="multiple",
        height=100,
        elem_id="voice-clips",
        elem_classes="drop",
    )
    recording = gr.Audio(
        label=t("inference.record_voice"),
        sources=["microphone"],
        type="filepath",
        buttons=[],
        elem_id="microphone",
    )
    return files, recording


def voice_html(request: PanelRequest) -> str:
    """Offer the selected clips for listening, say how good they are, and let the voice be saved under a name."""
    html = _reference(request)
    clips = [views.check(f"clip-{number}", clip.title()) for number, clip in enumerate(scored_clips(request))]
    if clips:
        return html + views.boxes(clips) + views.row(views.button("use_clips", "inference.use_clips"))
    button = views.button("find_clips", "inference.find_clips")
    return html + note("inference.dataset_clips_hint") + views.row(button)


def _reference(request: PanelRequest) -> str:
    """Say how good the clips of the selected voice are, and offer to save it."""
    reference = request.text("reference")
    html = ""
    for path in (path for path in map(Path, split_values(reference)) if path.is_absolute() and path.is_file()):
        html += views.hear(path, path.name, path.name) if path.is_relative_to(request.page.output) else ""
        html += message_box("success", f"{path.name}: {reference_clips.describe(path)}", aloud=False)
    if html:
        name = views.text_field("voice", "inference.voice_name", "inference.voice_name_hint")
        html += views.row(name, views.button("save_voice", "inference.save_voice"))
    return html


def scored_clips(request: PanelRequest) -> list[reference_clips.ScoredClip]:
    """Return the clips of the dataset that suit as a voice, the best first, once they were looked for."""
    scored: list[reference_clips.ScoredClip] = request.fields.get("_scored") or []
    return scored
