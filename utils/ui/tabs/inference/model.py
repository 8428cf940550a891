"""Choosing a model, and having it in memory."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import gradio as gr

from utils.config import SpeechConfig
from utils.core.errors import AmharicTtsError
from utils.runs.tasks import Work
from utils.ui import error_text
from utils.ui.form import info
from utils.ui.i18n import field_title, t
from utils.ui.page import RAW_INPUTS
from utils.ui.tabs.inference import model_choices, pronunciation, render
from utils.ui.tabs.inference.context import MODEL, Room, Sight, fault
from utils.ui.views import note
from utils.workspace import reference_clips


def build_model(room: Room) -> dict[str, Any]:
    """Lay out picker, buttons and what is known of the model; return what the clock fills."""
    picker = gr.Dropdown(
        [],
        label=field_title(SpeechConfig, "model"),
        info=info(SpeechConfig, "model"),
        allow_custom_value=True,
        interactive=True,
        elem_id="model",
    )
    with gr.Row():
        room.fields(*MODEL)
    room.form["model"] = picker
    with gr.Row():
        load = gr.Button(t("inference.load"), interactive=False, min_width=120, elem_id="load-model")
        unload = gr.Button(t("inference.unload"), interactive=False, min_width=120, elem_id="unload-model")
    reason, card = gr.HTML(elem_id="model-reason"), gr.HTML(elem_id="model-card")
    _tie_buttons(room, load, unload, card)
    return {"model": picker, "load": load, "unload": unload, "model_reason": reason, "card": card}


def _tie_buttons(room: Room, load: gr.Button, unload: gr.Button, card: gr.HTML) -> None:
    def load_model(model: str | None, device: str, precision: str, language: str) -> Iterator[str]:
        try:
            for _ in Work(lambda: iter([room.studio.load(model or "", device, precision)])).news():
                yield render.model(room.studio, model or "", None, None, language)
            yield render.model(room.studio, model or "", None, None, language)
        except Exception as error:  # noqa: BLE001  # it is shown
            yield fault(error, language)

    def unload_model(model: str | None, language: str) -> str:
        try:
            room.studio.unload()
        except AmharicTtsError as error:
            return fault(error, language)
        return render.model(room.studio, model or "", None, None, language)

    given = [room.form["model"], room.form["device"], room.form["precision"], room.page.language]
    hidden: dict[str, Any] = {"show_progress": "hidden", **RAW_INPUTS}
    load.click(load_model, given, card, api_name="load_model", concurrency_limit=None, **hidden)
    unload.click(unload_model, [given[0], given[-1]], card, api_name="unload_model", concurrency_limit=None, **hidden)


def model_state(room: Room, sight: Sight, model: str, seen: Mapping[str, Any]) -> dict[str, Any]:
    """Show models, memory and voices.

    The page chooses a model where nobody did. One of the project takes the place of another that the page chose.
    """
    studio, found, language = room.studio, sight.models, sight.language
    picker: dict[str, Any] = {"choices": model_choices.choices(found, language)}
    if not model or seen.get("model", {}).get("value") == model:
        own = bool(model) and Path(model).is_relative_to(sight.place.root)
        model = picker["value"] = model if own else model_choices.preferred(found, sight.place.root)
    reads, unknown = _reads(model, language)
    busy, loaded = bool(studio.loading), studio.card is not None
    none = t("inference.no_model", language)
    voices = reference_clips.choices(sight.place, studio.voices())
    return {
        "model": picker,
        "load": {"interactive": bool(model) and not busy},
        "unload": {"interactive": loaded and not busy and not studio.users},
        "model_reason": note(unknown if model else none),
        "card": render.model(studio, model, reads, None, language),
        "speak": {"interactive": bool(model)},
        "reference": {"choices": [(t("inference.model_voice", language), ""), *voices]},
    }


def nothing_open(room: Room, error: AmharicTtsError, language: str) -> dict[str, Any]:
    """Say why no project is open and nothing can be spoken or chosen."""
    made: dict[str, Any] = {name: {"interactive": False} for name in ("load", "speak", "restore", "delete", "undo")}
    return made | {
        "card": render.model(room.studio, "", None, error, language),
        "chosen": {"choices": [], "value": None},
    }


def _reads(model: str, language: str) -> tuple[dict[str, str] | None, str]:
    """Return how the chosen model reads, or why that is not known."""
    if not model:
        return None, ""
    try:
        return pronunciation.settings_of(model), ""
    except AmharicTtsError as error:
        return None, error_text.describe(error, language)
