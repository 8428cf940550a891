"""From what is written to what the model reads, step by step and word by word: one text box and two tables."""

from collections import Counter

import gradio as gr

from utils.amharic import explain
from utils.amharic.explanation import Explanation, Word
from utils.ui.i18n import t
from utils.ui.page import PRIVATE_EVENT, QUIET_EVENT, PageContext, show_errors
from utils.ui.views import cell, note, table

SAMPLE = "ሰላም! በ2017 ዓ.ም. 15 ልጆች ወደ ት/ቤት መጡ።"
MOST_WORDS = 200  # more rows than anybody reads

LOST = {
    "unknown": "pronunciation.unknown_letters",
    "unspoken": "pronunciation.foreign_letters",
    "dropped": "pronunciation.dropped",
}


def build_explanation(page: PageContext) -> gr.Textbox:
    """Lay out the text box with its tables and keep them in step; return the box."""
    box = gr.Textbox(
        SAMPLE,
        label=t("common.text"),
        info=t("pronunciation.text_hint"),
        lines=3,
        elem_id="text",
    )
    tables = gr.HTML(elem_id="explanation")

    @show_errors
    def explain_text(text: str | None, page_language: str) -> str:
        return show(explain(text or ""), page_language)

    given = [box, page.language]
    typed = [page.blocks.load, box.change]
    gr.on(typed, explain_text, given, tables, api_name="explain", trigger_mode="always_last", **QUIET_EVENT)
    page.language.change(explain_text, given, tables, **PRIVATE_EVENT)
    return box


def show(found: Explanation, language: str) -> str:
    """Show the whole way of a text, what was lost on it, and each word with what decided its doubled consonants."""
    if not found.written.strip():
        return note(t("common.nothing_to_explain", language))
    return steps(found, language) + losses(found, language) + words(found.words, language)


def steps(found: Explanation, language: str) -> str:
    """Show the text at each station."""
    rows = {
        "common.written": found.written,
        "common.normalised": found.normalized,
        "common.sounds": found.phones,
        "common.model_reads": found.latin,
    }
    titles = [t(title, language) for title in ("pronunciation.step", "common.text")]
    return table(titles, [(cell(t(step, language), classes="mark"), cell(text)) for step, text in rows.items()])


def losses(found: Explanation, language: str) -> str:
    """Name what the model will not hear."""
    counts: dict[str, Counter[str]] = {name: getattr(found, name) for name in LOST}
    return "".join(note(t(LOST[name], language, letters=listed(lost))) for name, lost in counts.items() if lost)


def listed(counts: Counter[str]) -> str:
    """Write letters with how often they occur."""
    return ", ".join(f"{letter} × {count}" if count > 1 else letter for letter, count in counts.most_common(20))


def words(found: tuple[Word, ...], language: str) -> str:
    """Show the words one by one."""
    titles = [
        t(title, language)
        for title in ("pronunciation.word", "common.sounds", "common.model_reads", "pronunciation.gemination")
    ]
    rows = [[cell(text) for text in (word.normalized, word.phones, word.latin, word.gemination)] for word in found]
    more = len(rows) - MOST_WORDS
    rest = note(t("pronunciation.more_words", language, count=more)) if more > 0 else ""
    return table(titles, rows[:MOST_WORDS]) + rest
