"""The Text tab: what the model reads for a text, step by step and word by word."""

from collections import Counter

import gradio as gr

from utils.amharic import explain
from utils.amharic.explanation import Explanation, Word
from utils.ui.i18n import heading, labels, t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, PageContext, show_errors
from utils.ui.views import cell, note, table

SAMPLE = "ሰላም! በ2017 ዓ.ም. 15 ልጆች ወደ ት/ቤት መጡ።"
MAX_WORDS = 200

LOST = {
    "unknown": "pronunciation.unknown_letters",
    "unspoken": "pronunciation.foreign_letters",
    "dropped": "pronunciation.dropped",
}


def build(page: PageContext) -> gr.Tab:
    tab = gr.Tab(t("common.text"), id="text")
    with tab:
        gr.Markdown(heading("common.pronunciation_preview"))
        box = gr.Textbox(SAMPLE, **labels("common.text", "pronunciation.text_hint"), lines=3, elem_id="text")
        tables = gr.HTML(elem_id="explanation")

    @show_errors
    def preview(text: str, page_language: str) -> str:
        return show(explain(text), page_language)

    inputs = [box, page.language]
    events = [page.blocks.load, box.change]
    gr.on(events, preview, inputs, tables, api_name="explain", trigger_mode="always_last", **QUIET_EVENT)
    page.language.change(preview, inputs, tables, **PRIVATE_EVENT)
    return tab


def show(explanation: Explanation, language: str) -> str:
    """Return the steps of a text, the letters that the model does not get, and a table of the words."""
    if not explanation.written.strip():
        return note(t("common.nothing_to_explain", language))
    titles = [t(title, language) for title in ("pronunciation.step", "common.text")]
    steps = {
        "common.written": explanation.written,
        "common.normalised": explanation.normalized,
        "common.sounds": explanation.phones,
        "common.model_reads": explanation.latin,
    }
    html = table(titles, [(cell(t(step, language), classes="mark"), cell(text)) for step, text in steps.items()])
    for name, key in LOST.items():
        if counts := getattr(explanation, name):
            html += note(t(key, language, letters=letter_counts(counts)))
    return html + words(explanation.words, language)


def letter_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{letter} × {count}" if count > 1 else letter for letter, count in counts.most_common(20))


def words(explained: tuple[Word, ...], language: str) -> str:
    titles = ("pronunciation.word", "common.sounds", "common.model_reads", "pronunciation.gemination")
    rows = [[cell(text) for text in (word.normalized, word.phones, word.latin, word.gemination)] for word in explained]
    more = len(rows) - MAX_WORDS
    rest = note(t("pronunciation.more_words", language, count=more)) if more > 0 else ""
    return table([t(title, language) for title in titles], rows[:MAX_WORDS]) + rest
