"""The model and the voice: select them, load the model, see what is in memory, add a voice."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from utils.config import SEPARATOR, SpeechConfig
from utils.core.errors import AmharicTtsError
from utils.core.languages import find
from utils.core.paths import Project
from utils.speech.models import ListedModel
from utils.speech.session import ActiveModel, SpeechSession
from utils.ui.form import MULTISELECT, editable_dropdown
from utils.ui.i18n import describe_error, labels, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, Advanced, show_errors
from utils.ui.tabs.inference.context import OWN_PROGRESS, Context, Snapshot, progress_html, shown_error
from utils.ui.tabs.inference.text import tokenizer_of
from utils.ui.views import audio_player, cards, error_box, message_box, note
from utils.workspace import reference_clips
from utils.xtts.tokenizer import Tokenizer

KINDS = {"ready": "inference.finished_model", "checkpoint": "inference.checkpoint", "base": "inference.base_model"}


def build_model(context: Context, advanced: Advanced) -> dict[str, Any]:
    """Lay out the picker, and what is in memory; return the widgets that the timer updates."""
    picker = context.form["model"] = editable_dropdown(SpeechConfig, "model", [], None)
    reason = gr.HTML(elem_id="model-reason")
    with advanced.section():
        with gr.Row():
            context.build_fields("device", "precision")
        with gr.Row():
            load = gr.Button(t("inference.load"), visible=False, min_width=120, elem_id="load-model")
            unload = gr.Button(t("inference.unload"), visible=False, min_width=120, elem_id="unload-model")
        card = gr.HTML(elem_id="model-card")
    session = context.session

    def load_model(model: str | None, device: str, precision: str, language: str) -> Iterator[str]:
        try:
            config = SpeechConfig.parse({"model": model or "", "device": device, "precision": precision})
            for _ in context.submit(lambda _: iter(()), config).events():
                yield model_html(session, config.model, language)
            yield model_html(session, config.model, language)
        except Exception as error:  # noqa: BLE001  # shown
            yield shown_error(error, language)

    @show_errors
    def unload_model(model: str, language: str) -> str:
        session.unload()
        return model_html(session, model, language)

    inputs = [picker, context.form["device"], context.form["precision"], context.page.language]
    options: dict[str, Any] = {"concurrency_limit": None, **OWN_PROGRESS}
    load.click(load_model, inputs, card, api_name="load_model", **options)
    unload.click(unload_model, [inputs[0], inputs[-1]], card, api_name="unload_model", **options)
    return {"model": picker, "load": load, "unload": unload, "model_reason": reason, "card": card}


def model_state(context: Context, snapshot: Snapshot, model: str, seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return updates for models, memory and voices.

    A model that the page selected itself gives way to one of the open project, and that one to the finished model.
    """
    session, language, root = context.session, snapshot.language, snapshot.project.root
    picker: dict[str, Any] = {"choices": model_choices(snapshot.models, language)}
    if not model or seen.get("model", {}).get("value") == model:
        model = picker["value"] = preferred_model(snapshot.models, root, model)
    reason, preview = t("inference.no_model", language), ""
    if model:
        try:
            reason, preview = "", _describe_reading(tokenizer_of(model), language)
        except AmharicTtsError as error:
            reason = describe_error(error, language)
    is_idle = not session.loading and not session.users
    return {
        "model": picker,
        "load": {"visible": bool(model) and not session.loading},
        "unload": {"visible": session.loaded is not None and is_idle},
        "model_reason": note(reason),
        "card": model_html(session, model, language, preview),
        "speak": {"visible": bool(model)},
        "reference": {"choices": voice_choices(context, snapshot.project, language)},
    }


def no_project_state(context: Context, error: AmharicTtsError, language: str) -> dict[str, Any]:
    """Return updates for when no project is open: nothing can be spoken or selected."""
    hidden = {name: {"visible": False} for name in ("load", "speak", "restore", "delete", "undo")}
    card = error_box(error, language) + model_html(context.session, "", language)
    return {**hidden, "card": card, "chosen": {"choices": [], "value": None}}


def model_choices(models: list[ListedModel], language: str) -> list[tuple[str, str]]:
    return [(_title(model, language), str(model.path)) for model in models]


def _title(model: ListedModel, language: str) -> str:
    parts = [model.name, t(KINDS[model.kind], language)]
    if model.eval_loss is not None:
        parts.append(t("common.evaluation_loss", language, loss=f"{model.eval_loss:.4f}"))
    parts.append(f"{model.size / 1e9:.2f} GB" if model.size >= 1e8 else f"{model.size / 1e6:.0f} MB")
    return " · ".join([*parts, *(["★"] if model.is_best else [])])


def preferred_model(models: Sequence[ListedModel], project: Path, selected: str) -> str:
    """Return the model that a visitor most likely wants, of the project first: finished, else selected, else best."""

    def rank(model: ListedModel) -> tuple[bool, ...]:
        is_own = model.path.is_relative_to(project)
        return is_own, model.kind == "ready", is_own and str(model.path) == selected, model.is_best

    return str(max(models, key=rank).path) if models else ""


def model_html(session: SpeechSession, selected: str, language: str, preview: str = "") -> str:
    """Show what is in memory, and how the selected model reads text."""
    parts, loaded = [], session.loaded
    if session.loading:
        parts.append(progress_html(t("inference.loading_model", language)))
    if loaded:
        parts.append(_card(loaded, session.users, language))
    elif not session.loading:
        parts.append(note(t("inference.no_model_loaded", language)))
    is_other = loaded is None or loaded.choice[0] != selected
    if loaded and selected and is_other:
        parts.append(note(t("inference.other_model_selected", language)))
    if preview and is_other:
        parts.append(cards({"inference.chosen_model_reads": preview}, language))
    return "".join(parts)


def _card(loaded: ActiveModel, users: int, language: str) -> str:
    model, precision = loaded.synthesizer.model, loaded.synthesizer.precision
    memory = f"{loaded.gib:.2f} GiB"
    if loaded.gpu_gib > 0.005:
        memory += f" + {loaded.gpu_gib:.2f} GiB ({t('common.gpu', language)})"
    took = t("inference.loaded_in", language, seconds=f"{loaded.seconds:.1f}")
    sound = f"{t('inference.sound', language)} {precision.vocoder_reason}"
    about = model.about
    training = [str(about["run"])] if about.get("run") else []
    if about.get("step") is not None:
        training.append(f"{t('common.step', language)} {about['step']}")
    if isinstance(loss := about.get("eval_loss"), int | float):
        training.append(t("common.evaluation_loss", language, loss=f"{loss:.4f}"))
    rows = {
        "inference.in_memory": f"{model.name} · {memory} · {took}",
        "inference.computes_on": f"{precision.device} · GPT {precision.gpt_reason} · {sound}",
        "inference.input": _describe_reading(model.tokenizer, language),
        "inference.speaks": ", ".join(find(code).native_name or code for code in model.languages),
        "common.training": " · ".join(training),
        "common.in_use": t("inference.users_now", language, count=users) if users else "",
    }
    known = {name: value for name, value in rows.items() if value}
    return cards(known, language) + message_box("warning", *model.notices)


def _describe_reading(tokenizer: Tokenizer, language: str) -> str:
    """Describe how a model reads its added language, from its metadata."""
    settings = tokenizer.settings
    if settings is None:
        return t("inference.published_languages", language)
    parts = [find(settings.language).native_name, t(f"inference.mode_{settings.mode}", language)]
    if settings.mode != "fidel":
        backend = t(f"inference.backend_{settings.backend}", language)
        parts.append(f"{t('inference.amharic_g2p', language)}: {backend}")
    if settings.overrides:
        parts.append(t("inference.lexicon_size", language, count=len(settings.overrides)))
    return " · ".join(parts)


# --- the voice ---


def voice_choices(context: Context, project: Project, language: str) -> list[tuple[str, str]]:
    """List the voices of the model in memory and of the project as (label, value)."""
    loaded = context.session.loaded
    voices = loaded.synthesizer.voices() if loaded else ()
    own = (t("inference.model_voice", language), "")
    return [own, *reference_clips.choices(project, voices)]


def build_voice(context: Context) -> gr.Dropdown:
    picker = context.form["reference"] = editable_dropdown(
        SpeechConfig, "reference", [(t("inference.model_voice"), "")], ""
    )
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
            _build_dataset_clips(context, picker)

    @show_errors
    def add_clips(paths: Sequence[str] | str | None, project: str, language: str) -> tuple[Any, str]:
        opened, paths = context.page.open(project), [paths] if isinstance(paths, str) else paths or []
        added = [reference_clips.add(opened, Path(path)) for path in paths]
        value: dict[str, Any] = {"value": reference_clips.join_reference(added)} if added else {}
        return gr.update(choices=voice_choices(context, opened, language), **value), ""

    @show_errors
    def describe_voice(reference: str, language: str) -> Iterator[str]:  # noqa: ARG001  # of its errors
        """Offer the selected clips for listening, and then say how good they are."""
        paths = [Path(part.strip()) for part in reference.split(SEPARATOR) if part.strip()]
        files = [path for path in paths if path.is_absolute() and path.is_file()]
        players = [audio_player(path, path.name) if path.is_relative_to(context.page.output) else "" for path in files]
        yield "".join(players)
        facts = [message_box("success", f"{path.name}: {reference_clips.describe(path)}") for path in files]
        if files:
            yield "".join(html for pair in zip(players, facts, strict=True) for html in pair)

    inputs, outputs = [context.page.project, context.page.language], [picker, facts]
    options: dict[str, Any] = {"show_progress": "minimal", "concurrency_limit": None}
    files.upload(add_clips, [files, *inputs], outputs, api_name="use_voice", **options)
    recording.stop_recording(add_clips, [recording, *inputs], outputs, api_visibility="private", **options)
    picker.change(
        describe_voice,
        [picker, context.page.language],
        facts,
        api_visibility="private",
        show_progress="hidden",
        concurrency_limit=2,
        trigger_mode="always_last",
        **RAW_INPUTS,
    )
    return picker


def _build_dataset_clips(context: Context, picker: gr.Dropdown) -> None:
    find = gr.Button(t("inference.find_clips"), elem_id="score-clips")
    texts = labels("inference.dataset_clips")
    clips = gr.Dropdown([], max_choices=5, elem_id="dataset-clips", **MULTISELECT, **texts)
    progress = gr.HTML(elem_id="score-progress")

    def score_clips(project: str, language: str) -> Iterator[tuple[Any, str]]:
        scored: list[reference_clips.ScoredClip] = []
        try:
            candidates = reference_clips.candidates(context.page.open(project))
            yield gr.skip(), progress_html(t("inference.getting_ready", language))
            for clip in reference_clips.score_clips(candidates):
                scored.append(clip)
                step, total = len(scored), len(candidates)
                sentence = t("inference.scoring_clips", language, step=step, total=total)
                yield gr.skip(), progress_html(sentence, step, total)
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
