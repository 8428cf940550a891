"""The text: its box, a preview of what the model reads, and the settings of speech."""

import functools
import secrets
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr

from utils.config import SpeechConfig
from utils.core.errors import AmharicTtsError, ConfigError, TextError
from utils.core.languages import AMHARIC
from utils.speech.planning import find_unspeakable, plan
from utils.ui.i18n import describe_error, heading, labels, t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, RAW_INPUTS, Advanced, Panel, PanelRequest
from utils.ui.tabs import pronunciation_fix
from utils.ui.tabs.inference.context import SAMPLES, Context
from utils.ui.views import cell, error_box, note, table
from utils.xtts.files import SETTINGS_FILE, VOCABULARY_FILE
from utils.xtts.language_packs import pack_for
from utils.xtts.tokenizer import TokenizedText, Tokenizer

MAX_LETTERS = 20_000  # read while somebody types
MAX_ROWS = 60


def build_text(context: Context, advanced: Advanced) -> gr.Textbox:
    text = gr.Textbox(SAMPLES[0], lines=5, max_lines=20, elem_id="speech-text", **labels("inference.text"))
    counter = gr.HTML(elem_id="counter")
    with gr.Accordion(t("common.pronunciation_preview"), open=False):
        preview = gr.HTML(elem_id="text-readings")
        fixed = gr.State(0.0)  # when a pronunciation was corrected
        _build_fix(context, fixed)
    with advanced.section():
        sentences = list(dict.fromkeys((*SAMPLES, *pack_for(AMHARIC.code).samples)))
        options: dict[str, Any] = {"value": None, "interactive": True, "elem_id": "sample-sentence"}
        texts = labels("inference.example_sentence", "inference.replaces_text")
        sample = gr.Dropdown(sentences, **options, **texts)
    # not "input", which fires again on blur and would overwrite newer text; not "select", which is for the mouse alone
    sample.change(lambda chosen: chosen or gr.skip(), sample, text, **RAW_INPUTS, **PRIVATE_EVENT)
    _bind_preview(context, text, counter, preview, fixed)
    return text


def _build_fix(context: Context, fixed: gr.State) -> None:
    def render(request: PanelRequest) -> str:
        return pronunciation_fix.fix_fields(request.language, "text-fix")

    def fix(request: PanelRequest) -> Mapping[Any, Any]:
        pronunciation_fix.fix(request)
        return {fixed: time.time()}

    Panel(context.page, "fix-pronunciation", render, {pronunciation_fix.ACTION: fix}, [fixed])


def build_settings(context: Context) -> None:
    """Lay out all settings of speech that no other part has."""
    gr.Markdown(heading("inference.voice_settings", level=3))
    with gr.Column(elem_classes="settings"):
        context.build_fields()
    random_seed = gr.Button(t("inference.random_seed"), min_width=140, size="sm", elem_id="random-seed")
    random_seed.click(lambda: secrets.randbelow(2**32), None, context.form["seed"], **PRIVATE_EVENT)


def _bind_preview(context: Context, text: gr.Textbox, counter: gr.HTML, table: gr.HTML, fixed: gr.State) -> None:
    def read_text(text: str | None, model: str | None, language: str | None, page_language: str) -> tuple[str, str]:
        preview = _preview(context, text or "", model or "", language or AMHARIC.code)
        return counter_html(preview, _estimate_seconds(preview), page_language), preview_html(preview, page_language)

    language, model, page = context.form["language"], context.form["model"], context.page
    inputs, outputs = [text, model, language, page.language], [counter, table]
    events: list[Any] = [text.change, language.change, model.change, page.blocks.load]  # type: ignore[attr-defined]
    options: dict[str, Any] = {"api_name": "read_text", "trigger_mode": "always_last"}
    gr.on(events, read_text, inputs, outputs, **options, **RAW_INPUTS, **QUIET_EVENT)
    page.language.change(read_text, inputs, outputs, **RAW_INPUTS, **PRIVATE_EVENT)
    fixed.change(read_text, inputs, outputs, **RAW_INPUTS, **PRIVATE_EVENT)


@dataclass(frozen=True)
class TextPreview:
    """How a model reads a text."""

    readings: tuple[TokenizedText, ...] = ()  # of each sentence
    unreadable: tuple[str, ...] = ()  # characters because of which the text is refused
    skipped: tuple[str, ...] = ()  # characters without sound
    max_tokens: int = 0  # of a sentence
    error: AmharicTtsError | None = None  # why the text cannot be spoken
    is_complete: bool = True  # whether all of the text was read


def _preview(context: Context, text: str, model: str, language: str) -> TextPreview:
    """Read a text with the vocabulary of the selected model, or of the model in memory if only that is known."""
    if not text.strip():
        return TextPreview()
    loaded = context.session.loaded
    try:
        tokenizer = tokenizer_of(model)
    except AmharicTtsError as error:
        if loaded is None or loaded.choice[0] != model:
            return TextPreview(error=error)
        tokenizer = loaded.synthesizer.model.tokenizer
    try:
        return preview_text(text, tokenizer, language)
    except AmharicTtsError as error:
        return TextPreview(error=error)


def preview_text(text: str, tokenizer: Tokenizer, language: str) -> TextPreview:
    """Read a text; one that cannot be spoken is read nevertheless, with the reason."""
    pack, part, error = tokenizer.pack(language), text[:MAX_LETTERS], None
    try:
        readings = tuple(
            sentence.tokenized for sentence in plan(part, tokenizer, SpeechConfig(language=language)).sentences
        )
    except TextError as problem:
        error = problem
        try:
            sentences = pack.split(part)
            readings = tuple(reading for one in sentences for reading in tokenizer.tokenize_parts(one, language))
        except TextError:  # refused by the normalisation itself: there is nothing to show
            readings = ()
    problems = find_unspeakable(part, tokenizer, language) if part.strip() else ()
    unreadable = dict.fromkeys(problem.characters for problem in problems if problem.refused)
    skipped = dict.fromkeys(problem.characters for problem in problems if not problem.refused)
    is_complete = part == text
    return TextPreview(readings, tuple(unreadable), tuple(skipped), pack.token_limit, error, is_complete)


def tokenizer_of(model: str) -> Tokenizer:
    """Open the vocabulary of a model by its folder, without loading the model."""
    if not model.strip():
        raise ConfigError("No model is selected.", hint="Select one in the list, or train one first.")
    folder = Path(model).expanduser()
    versions = tuple(_modified(folder / name) for name in (VOCABULARY_FILE, SETTINGS_FILE))
    if not versions[0]:
        raise ConfigError("The vocabulary of this model is unknown until it is loaded.", hint="Press Load.")
    return _open_tokenizer(folder, versions)


@functools.lru_cache(maxsize=8)
def _open_tokenizer(folder: Path, versions: tuple[int, ...]) -> Tokenizer:  # noqa: ARG001  # opened again after a change
    return Tokenizer.load_current(folder)


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _estimate_seconds(preview: TextPreview) -> float | None:
    """Estimate the duration, once torch was loaded for a model anyway."""
    guards: Any = sys.modules.get("utils.speech.guards")
    if guards is None or not preview.readings:
        return None
    return float(sum(guards.sounds(reading) for reading in preview.readings) / guards.SpeechLimits().usual)


def counter_html(preview: TextPreview, seconds: float | None, language: str) -> str:
    """Count sentences and tokens, and show which characters are not supported."""
    if not preview.readings:
        return note(describe_error(preview.error, language)) if preview.error else ""
    count, longest = len(preview.readings), max(len(reading.ids) for reading in preview.readings)
    parts = [t("inference.sentence_count", language, count=count, longest=longest, limit=preview.max_tokens)]
    if seconds is not None:
        parts.append(t("inference.estimated_length", language, seconds=f"{seconds:.0f}"))
    if not preview.is_complete:
        parts.append(t("inference.text_truncated", language))
    html = note(" · ".join(parts))
    if preview.unreadable:
        marks = " ".join(f"<mark>{escape(character)}</mark>" for character in preview.unreadable)
        reason = escape(t("inference.unsupported_characters", language))
        html += f'<div class="message error" role="alert"><p>{reason} {marks}</p></div>'
    elif preview.error:
        html += error_box(preview.error, language)
    if preview.skipped:
        html += note(t("inference.skipped_characters", language, signs=" ".join(preview.skipped)))
    return html


def preview_html(preview: TextPreview, language: str) -> str:
    if not preview.readings:
        return note(t("common.nothing_to_explain", language))
    keys = ("common.written", "common.normalised", "common.sounds", "common.model_reads", "inference.tokens")
    rows = [
        [
            f"<td>{_mark(reading.written, (*preview.unreadable, *reading.unknown))}</td>",
            cell(reading.normalised),
            cell(reading.phones),
            f'<td class="reads">{_mark(reading.model_text, reading.unknown)}</td>',
            cell(f"{len(reading.ids)}: {' '.join(reading.tokens)}", classes="reads"),
        ]
        for reading in preview.readings[:MAX_ROWS]
    ]
    hidden = len(preview.readings) - MAX_ROWS
    rest = note(t("inference.more_sentences", language, count=hidden)) if hidden > 0 else ""
    return table([t(key, language) for key in keys], rows, classes="stack") + rest


def _mark(text: str, strings: Iterable[str]) -> str:
    marked = {character for character in "".join(strings) if not character.isspace()}
    return "".join(f"<mark>{escape(letter)}</mark>" if letter in marked else escape(letter) for letter in text)
