"""The Text tab: what the model reads for a text, step by step and word by word."""

from collections import Counter

import gradio as gr

from utils.amharic import explain
from utils.amharic.explanation import Explanation, Word
from utils.ui.i18n import heading, t
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
    """Lay out the tab."""
    tab = gr.Tab(t("common.text"), id="text")
    with tab:
        gr.Markdown(heading("common.pronunciation_preview"))
        box = gr.Textbox(SAMPLE, label=t("common.text"), info=t("pronunciation.text_hint"), lines=3, elem_id="text")
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
    """Return the steps of a text, the letters it lost, and a table of its words."""
    if not explanation.written.strip():
        return note(t("common.nothing_to_explain", language))
    return steps(explanation, language) + lost_letters(explanation, language) + words(explanation.words, language)


def steps(explanation: Explanation, language: str) -> str:
    """Return the text after each step."""
    rows = {
        "common.written": explanation.written,
        "common.normalised": explanation.normalized,
        "common.sounds": explanation.phones,
        "common.model_reads": explanation.latin,
    }
    titles = [t(title, language) for title in ("pronunciation.step", "common.text")]
    return table(titles, [(cell(t(step, language), classes="mark"), cell(text)) for step, text in rows.items()])


def lost_letters(explanation: Explanation, language: str) -> str:
    """Return notes on the letters that the model does not get."""
    counts: dict[str, Counter[str]] = {name: getattr(explanation, name) for name in LOST}
    return "".join(
        note(t(LOST[name], language, letters=letter_counts(letters))) for name, letters in counts.items() if letters
    )


def letter_counts(counts: Counter[str]) -> str:
    """Return letters with the number of times they occur."""
    return ", ".join(f"{letter} × {count}" if count > 1 else letter for letter, count in counts.most_common(20))


def words(explained: tuple[Word, ...], language: str) -> str:
    """Return a table of the words."""
    titles = ("pronunciation.word", "common.sounds", "common.model_reads", "pronunciation.gemination")
    rows = [[cell(text) for text in (word.normalized, word.phones, word.latin, word.gemination)] for word in explained]
    more = len(rows) - MAX_WORDS
    rest = note(t("pronunciation.more_words", language, count=more)) if more > 0 else ""
    return table([t(title, language) for title in titles], rows[:MAX_WORDS]) + rest
