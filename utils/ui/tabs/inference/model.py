"""The model: select one, load it, and see what is in memory."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from utils.config import SpeechConfig
from utils.core.errors import AmharicTtsError
from utils.core.languages import find
from utils.speech.models import ListedModel
from utils.speech.session import ActiveModel, SpeechSession
from utils.ui.form import info
from utils.ui.i18n import describe_error, field_title, t
from utils.ui.page import RAW_INPUTS, show_errors
from utils.ui.tabs.inference.context import Context, Snapshot, progress_html, shown_error
from utils.ui.tabs.inference.text import tokenizer_of
from utils.ui.views import cards, error_box, message_box, note
from utils.workspace import reference_clips
from utils.xtts.tokenizer import Tokenizer

KINDS = {"ready": "inference.finished_model", "checkpoint": "inference.checkpoint", "base": "inference.base_model"}


def build_model(context: Context) -> dict[str, Any]:
    """Lay out the picker and the buttons; return the widgets that the timer updates."""
    picker = gr.Dropdown(
        [],
        label=field_title(SpeechConfig, "model"),
        info=info(SpeechConfig, "model"),
        allow_custom_value=True,
        interactive=True,
        elem_id="model",
    )
    with gr.Row():
        context.build_fields("device", "precision")
    context.form["model"] = picker
    with gr.Row():
        load = gr.Button(t("inference.load"), interactive=False, min_width=120, elem_id="load-model")
        unload = gr.Button(t("inference.unload"), interactive=False, min_width=120, elem_id="unload-model")
    reason, card = gr.HTML(elem_id="model-reason"), gr.HTML(elem_id="model-card")
    _bind_buttons(context, load, unload, card)
    return {"model": picker, "load": load, "unload": unload, "model_reason": reason, "card": card}


def _bind_buttons(context: Context, load: gr.Button, unload: gr.Button, card: gr.HTML) -> None:
    def load_model(model: str | None, device: str, precision: str, language: str) -> Iterator[str]:
        try:
            config = SpeechConfig.parse({"model": model or "", "device": device, "precision": precision})
            for _ in context.submit(lambda _: iter(()), config).events():
                yield model_html(context.session, config.model, language)
            yield model_html(context.session, config.model, language)
        except Exception as error:  # noqa: BLE001  # shown
            yield shown_error(error, language)

    def unload_model(model: str | None, language: str) -> str:
        try:
            context.session.unload()
        except AmharicTtsError as error:
            return shown_error(error, language)
        return model_html(context.session, model or "", language)

    inputs = [context.form["model"], context.form["device"], context.form["precision"], context.page.language]
    options: dict[str, Any] = {"show_progress": "hidden", "concurrency_limit": None, **RAW_INPUTS}
    load.click(load_model, inputs, card, api_name="load_model", **options)
    unload.click(show_errors(unload_model), [inputs[0], inputs[-1]], card, api_name="unload_model", **options)


def model_state(context: Context, snapshot: Snapshot, model: str, seen: Mapping[str, Any]) -> dict[str, Any]:
    """Return updates for models, memory and voices.

    A model that the page selected itself gives way to one of the open project.
    """
    session, language, root = context.session, snapshot.language, snapshot.project.root
    picker: dict[str, Any] = {"choices": model_choices(snapshot.models, language)}
    if not model or seen.get("model", {}).get("value") == model:
        is_own = bool(model) and Path(model).is_relative_to(root)
        model = picker["value"] = model if is_own else preferred_model(snapshot.models, root)
    reason = t("inference.no_model", language)
    preview = ""
    if model:
        try:
            reason, preview = "", describe_reading(tokenizer_of(model), language)
        except AmharicTtsError as error:
            reason = describe_error(error, language)
    voices = reference_clips.choices(snapshot.project, model_voices(session))
    is_idle = not session.loading and not session.users
    return {
        "model": picker,
        "load": {"interactive": bool(model) and not session.loading},
        "unload": {"interactive": session.loaded is not None and is_idle},
        "model_reason": note(reason),
        "card": model_html(session, model, language, preview),
        "speak": {"interactive": bool(model)},
        "reference": {"choices": [(t("inference.model_voice", language), ""), *voices]},
    }


def no_project_state(context: Context, error: AmharicTtsError, language: str) -> dict[str, Any]:
    """Return updates for when no project is open: nothing can be spoken or selected."""
    disabled = {name: {"interactive": False} for name in ("load", "speak", "restore", "delete", "undo")}
    card = error_box(error, language) + model_html(context.session, "", language)
    return {**disabled, "card": card, "chosen": {"choices": [], "value": None}}


def model_voices(session: SpeechSession) -> tuple[str, ...]:
    """Return the voices of the model in memory."""
    return session.loaded.synthesizer.voices() if session.loaded else ()


def model_choices(models: list[ListedModel], language: str) -> list[tuple[str, str]]:
    """List models as (label, path)."""
    return [(_title(model, language), str(model.path)) for model in models]


def _title(model: ListedModel, language: str) -> str:
    parts = [model.name, t(KINDS[model.kind], language)]
    if model.eval_loss is not None:
        parts.append(t("common.evaluation_loss", language, loss=f"{model.eval_loss:.4f}"))
    parts.append(f"{model.size / 1e9:.2f} GB" if model.size >= 1e8 else f"{model.size / 1e6:.0f} MB")
    return " · ".join([*parts, *(["★"] if model.is_best else [])])


def preferred_model(models: list[ListedModel], project: Path) -> str:
    """Return the model that a visitor most likely wants: one of the project first."""
    own = [model for model in models if model.path.is_relative_to(project)]
    best = [model for model in own if model.kind == "ready" or model.is_best]
    return str(next(iter([*best, *own, *models])).path) if models else ""


def model_html(session: SpeechSession, selected: str, language: str, preview: str = "") -> str:
    """Show what is in memory, and how the selected model reads text."""
    parts, loaded = [], session.loaded
    if session.loading:
        parts.append(progress_html(t("inference.loading_model", language)))
    if loaded:
        parts.append(_card(loaded, session.users, language))
    elif not session.loading:
        parts.append(note(t("inference.no_model_loaded", language)))
    if loaded and selected and loaded.choice[0] != selected:
        parts.append(note(t("inference.other_model_selected", language)))
    if preview and (loaded is None or loaded.choice[0] != selected):
        parts.append(cards({"inference.chosen_model_reads": preview}, language))
    return "".join(parts)


def _card(loaded: ActiveModel, users: int, language: str) -> str:
    model, precision = loaded.synthesizer.model, loaded.synthesizer.precision
    memory = f"{loaded.gib:.2f} GiB"
    if loaded.gpu_gib > 0.005:
        memory += f" + {loaded.gpu_gib:.2f} GiB ({t('common.gpu', language)})"
    took = t("inference.loaded_in", language, seconds=f"{loaded.seconds:.1f}")
    about = model.about
    training = [str(about["run"])] if about.get("run") else []
    if about.get("step") is not None:
        training.append(f"{t('common.step', language)} {about['step']}")
    if isinstance(loss := about.get("eval_loss"), int | float):
        training.append(t("common.evaluation_loss", language, loss=f"{loss:.4f}"))
    rows = {
        "inference.in_memory": f"{model.name} · {memory} · {took}",
        "inference.computes_on": f"{precision.device} · GPT {precision.gpt_reason} · "
        f"{t('inference.sound', language)} {precision.vocoder_reason}",
        "inference.input": describe_reading(model.tokenizer, language),
        "inference.speaks": ", ".join(find(code).native_name or code for code in model.languages),
        "common.training": " · ".join(training),
        "common.in_use": t("inference.users_now", language, count=users) if users else "",
    }
    known = {name: value for name, value in rows.items() if value}
    return cards(known, language) + message_box("warning", *model.notices)


def describe_reading(tokenizer: Tokenizer, language: str) -> str:
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
