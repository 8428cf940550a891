"""The text: its box, and a preview of what the model reads."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import gradio as gr
from markupsafe import Markup

import utils.speech
from utils.core import wording
from utils.core.errors import AmharicTtsError
from utils.core.languages import AMHARIC
from utils.speech.planning import split_speakers, unknown_speakers
from utils.speech.preview import TextPreview, preview_text
from utils.studio import reference_clips
from utils.studio.models import tokenizer_of
from utils.ui.html import html
from utils.ui.i18n import describe_error, labels, t
from utils.ui.page import PRIVATE_EVENT, RAW_INPUTS, Panel, PanelRequest, Updates
from utils.ui.settings_form import Values, values_of
from utils.ui.tabs import pronunciation
from utils.ui.tabs.inference.shared import SAMPLES, Context
from utils.ui.views import cell, error_box, joined, message_box, note, table
from utils.xtts.language_packs import pack_for

MAX_ROWS = 60


def build_text(context: Context) -> gr.Textbox:
    text = gr.Textbox(SAMPLES[0], lines=4, max_lines=10, elem_id="speech-text", **labels("inference.text"))
    counter = gr.HTML(elem_id="counter")
    with gr.Accordion(t("common.pronunciation_preview"), open=False):
        readings = gr.HTML(elem_id="text-readings")
        fixed = gr.State(0.0)  # when a pronunciation was corrected
        build_fix(context, fixed)
        build_samples(text)

    def read_text(text: str, model: str, settings: Values, project: str) -> tuple[str, str]:
        return read(context, text, model, values_of(settings), project)

    page = context.page
    inputs: list[Any] = [text, context.model, context.form.widget, page.project]
    events = (page.blocks.load, *(widget.change for widget in (*inputs, page.language, fixed)))
    page.on_latest(events, read_text, inputs, [counter, readings], api_name="read_text", api_visibility="public")
    # gradio reloads the page after a restart of the server
    save = "text => sessionStorage.setItem('amharic-text', text)"
    text.change(None, text, None, js=save, api_visibility="private")
    restore = "text => sessionStorage.getItem('amharic-text') ?? text"
    page.blocks.load(None, text, text, js=restore, api_visibility="private")
    return text


def build_samples(text: gr.Textbox) -> None:
    """Lay out the choice of an example sentence, which replaces the text."""
    sentences = list(dict.fromkeys((*SAMPLES, *pack_for(AMHARIC.code).samples)))
    texts = labels("inference.example_sentence", "inference.replaces_text")
    sample = gr.Dropdown(sentences, value=None, interactive=True, elem_id="sample-sentence", **texts)
    # not "input", which fires again on blur and would overwrite newer text; not "select", which is for the mouse alone
    sample.change(lambda chosen: chosen or gr.skip(), sample, text, **RAW_INPUTS, **PRIVATE_EVENT)


def read(context: Context, text: str, model: str, settings: Mapping[str, Any], project: str) -> tuple[str, str]:
    """Return what is counted of a text, and how the model reads it."""
    try:
        voices = reference_clips.project_voices(context.page.open(project))
    except AmharicTtsError:  # shown in the header
        voices = {}
    parts = split_speakers(text, voices)
    said = "\n".join(said for _, said in parts)
    shown = preview(context, said, model, str(settings.get("language") or AMHARIC.code))
    count = len({reference for reference, _ in parts if reference})
    return counter_html(shown, count, unknown_speakers(text, voices)), preview_html(shown)


def build_fix(context: Context, fixed: gr.State) -> None:
    def render(_: PanelRequest) -> str:
        return pronunciation.fix_fields("text-fix")

    def fix(request: PanelRequest) -> Updates:
        pronunciation.fix(request)
        return {fixed: time.time()}

    Panel(context.page, "fix-pronunciation", render, {pronunciation.FIX: fix}, [fixed])


def preview(context: Context, text: str, model: str, language: str) -> TextPreview:
    """Read a text with the vocabulary of the selected model, or of the model in memory if only that is known."""
    if not text.strip():
        return TextPreview()
    loaded = context.session.loaded
    try:
        try:
            tokenizer = tokenizer_of(model)
        except AmharicTtsError:
            if loaded is None or loaded.choice[0] != model:
                raise
            tokenizer = loaded.synthesizer.model.tokenizer
        return preview_text(text, tokenizer, language)
    except AmharicTtsError as error:
        return TextPreview(error=error)


def _estimate_seconds(preview: TextPreview) -> float | None:
    """Estimate the duration, once torch was loaded for a model anyway."""
    guards: Any = getattr(utils.speech, "guards", None)  # set when its import has ended, in whichever thread
    if guards is None or not preview.readings:
        return None
    return float(sum(guards.sounds(reading) for reading in preview.readings) / guards.SpeechLimits().usual)


def counter_html(preview: TextPreview, speakers: int, unknown: Sequence[str]) -> str:
    """Count sentences, tokens and speakers, show which characters are not supported, and ask about unknown speakers."""
    if not preview.readings:
        return note(describe_error(preview.error)) if preview.error else ""
    shown = note(_counts(preview, speakers))
    if unknown:
        shown += message_box("warning", t("inference.unknown_speakers", names=", ".join(unknown)))
    if preview.unreadable:
        shown += message_box("error", f"{t('inference.unsupported_characters')} {' '.join(preview.unreadable)}")
    elif preview.error:
        shown += error_box(preview.error)
    if preview.skipped:
        shown += message_box("warning", t("inference.skipped_characters", signs=" ".join(preview.skipped)))
    return shown


def _counts(preview: TextPreview, speakers: int) -> str:
    count, longest = len(preview.readings), max(len(reading.ids) for reading in preview.readings)
    seconds = _estimate_seconds(preview)
    return joined(
        t("inference.sentence_count", count=count, longest=longest, limit=preview.max_tokens),
        t("inference.speaker_count", count=speakers) if speakers else "",
        "" if seconds is None else t("inference.estimated_length", time=wording.time(round(seconds))),
        "" if preview.is_complete else t("inference.text_truncated"),
    )


def preview_html(preview: TextPreview) -> str:
    if not preview.readings:
        return note("common.nothing_to_explain")
    keys = ("common.written", "common.normalized", "common.sounds", "common.model_reads", "inference.tokens")
    rows = [
        [
            _marked(reading.written, (*preview.unreadable, *reading.unknown)),
            reading.normalised,
            reading.phones,
            _marked(reading.model_text, reading.unknown, "reads"),
            cell(f"{len(reading.ids)}: {' '.join(reading.tokens)}", classes="reads"),
        ]
        for reading in preview.readings[:MAX_ROWS]
    ]
    hidden = len(preview.readings) - MAX_ROWS
    rest = note(t("inference.more_sentences", count=hidden)) if hidden > 0 else ""
    return table(keys, rows, classes="stack") + rest


def _marked(text: str, strings: Iterable[str], classes: str = "") -> Markup:
    """Return a cell with some letters marked."""
    marked = {character for character in "".join(strings) if not character.isspace()}
    shown = html("speech.html", "marked", [(letter, letter in marked) for letter in text], classes)
    return Markup(shown)  # noqa: S704  # the template escapes the text
