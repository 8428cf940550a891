"""The text, what the model reads of it, and how it is spoken."""

import secrets
import sys
from typing import Any

import gradio as gr

from utils.core.languages import AMHARIC
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS
from utils.ui.tabs.inference import pronunciation, render
from utils.ui.tabs.inference.context import HERE, Room
from utils.ui.tabs.inference.pronunciation import Seen
from utils.xtts.language_packs import pack_for

SAMPLES = (
    "ሰላም! እንኳን ደህና መጣችሁ።",
    "ዛሬ ሰኞ፣ መስከረም 5 ቀን 2017 ዓ.ም. ነው።",
    "እናቴ ጠዋት ከገበያ ትኩስ ዳቦ ገዝታ ቡና አፈላችልን።",
    "ልጁ በላ፤ ነገር ግን አልጠገበም። ምን ልስጠው?",
)


def build_text(room: Room) -> gr.Textbox:
    """Lay out the text box with its counter and its table."""
    with gr.Row():
        with gr.Column(scale=3, min_width=280):
            text = gr.Textbox(
                SAMPLES[0],
                label=t("inference.text"),
                info=t("inference.text_hint"),
                lines=5,
                max_lines=20,
                elem_id="speech-text",
            )
        with gr.Column(scale=1, min_width=240):
            room.fields("language")
            sample = gr.Dropdown(
                list(dict.fromkeys((*SAMPLES, *pack_for(AMHARIC.code).samples))),
                value=None,
                label=t("inference.example_sentence"),
                info=t("inference.replaces_text"),
                interactive=True,
                elem_id="sample-sentence",
            )
    counter = gr.HTML(elem_id="counter")
    with gr.Accordion(t("common.pronunciation_preview"), open=False):
        table = gr.HTML(elem_id="text-readings")
    # "input" comes once more when it is left, and what was typed since would be lost; "select" is for the mouse alone.
    sample.change(lambda chosen: chosen or gr.skip(), sample, text, **RAW_INPUTS, **PRIVATE_EVENT)
    _tie(room, text, counter, table)
    return text


def _tie(room: Room, text: gr.Textbox, counter: gr.HTML, table: gr.HTML) -> None:
    def read_text(text: str | None, model: str | None, language: str | None, page_language: str) -> tuple[str, str]:
        seen = _look(room, text or "", model or "", language or AMHARIC.code)
        return render.counter(seen, _seconds(seen), page_language), render.readings(seen, page_language)

    language, model = room.form["language"], room.form["model"]
    events: list[Any] = [text.change, language.change, model.change, room.page.blocks.load]  # type: ignore[attr-defined]
    given = [text, model, language, room.page.language]
    gr.on(
        events,
        read_text,
        given,
        [counter, table],
        api_name="read_text",
        trigger_mode="always_last",
        **RAW_INPUTS,
        **QUIET_EVENT,
    )
    room.page.language.change(read_text, given, [counter, table], **RAW_INPUTS, **PRIVATE_EVENT)


def _look(room: Room, text: str, model: str, language: str) -> Seen:
    """Read a text as the chosen model would, or as the one in memory where only that is known."""
    if not text.strip():
        return Seen()
    seen = pronunciation.look(text, model, language)
    card = room.studio.card
    if seen.error and not seen.readings and card and card.place == model:
        with room.studio.using() as loaded:
            return pronunciation.read(text, loaded.model.tokenizer, language)
    return seen


def _seconds(seen: Seen) -> float | None:
    """Estimate the length of the sound, once torch was loaded for a model anyway."""
    guards: Any = sys.modules.get("utils.speech.guards")
    if guards is None or not seen.readings:
        return None
    return float(sum(guards.sounds(one) for one in seen.readings) / guards.Limits().usual)


def build_settings(room: Room) -> None:
    """Lay out all settings of speech that no other part has."""
    with gr.Column(elem_classes="settings"):
        room.fields(*HERE)
    dice = gr.Button(t("inference.random_seed"), min_width=140, size="sm", elem_id="random-seed")
    with gr.Accordion(t("inference.more_settings"), open=False), gr.Column(elem_classes="settings"):
        room.fields(*room.rest)
    dice.click(lambda: secrets.randbelow(2**32), None, room.form["seed"], **PRIVATE_EVENT)
