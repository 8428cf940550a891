"""What the model reads for a text, step by step and word by word, as HTML; does not import gradio."""

from collections import Counter

from utils.amharic.explanation import Explanation, Word
from utils.ui.i18n import t
from utils.ui.views import cell, note, table

MAX_WORDS = 200

LOST = {
    "unknown": "pronunciation.unknown_letters",
    "unspoken": "pronunciation.foreign_letters",
    "dropped": "pronunciation.dropped",
}


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
