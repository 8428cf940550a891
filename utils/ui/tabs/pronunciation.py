"""What the model reads for a text, step by step and word by word, and the correction of a word's pronunciation."""

from utils.amharic.explanation import ExplainedWord, Explanation
from utils.dataset.metadata import read_language
from utils.studio.facts import InputError
from utils.ui.i18n import t
from utils.ui.page import PanelRequest, notify
from utils.ui.views import button, cell, details, note, row, table, text_field
from utils.xtts.pronunciations import add_pronunciation

MAX_WORDS = 200
FIX = "fix_pronunciation"
FIX_FIELDS = ("written", "spoken", "pronunciation_note")

LOST = {
    "unknown": "pronunciation.unknown_letters",
    "unspoken": "pronunciation.foreign_letters",
    "dropped": "pronunciation.dropped",
}


def show(explanation: Explanation) -> str:
    """Return the steps of a text, the letters that the model does not get, and a table of the words."""
    if not explanation.written.strip():
        return note("common.nothing_to_explain")
    steps = {
        "common.written": explanation.written,
        "common.normalized": explanation.normalized,
        "common.sounds": explanation.phones,
        "common.model_reads": explanation.latin,
    }
    rows = [(cell(step, classes="mark"), text) for step, text in steps.items()]
    html = table(("pronunciation.step", "common.text"), rows)
    for name, key in LOST.items():
        if counts := getattr(explanation, name):
            found = counts.most_common(20)
            letters = ", ".join(f"{letter} × {count}" if count > 1 else letter for letter, count in found)
            html += note(t(key, letters=letters))
    return html + words(explanation.words)


def words(explained: tuple[ExplainedWord, ...]) -> str:
    titles = ("pronunciation.word", "common.sounds", "common.model_reads", "pronunciation.gemination")
    rows = [(word.normalized, word.phones, word.latin, word.gemination) for word in explained]
    more = len(rows) - MAX_WORDS
    rest = note(t("pronunciation.more_words", count=more)) if more > 0 else ""
    return table(titles, rows[:MAX_WORDS]) + rest


def fix_fields(elem_id: str) -> str:
    """Return the fields for a word, its pronunciation and a note, with their button."""
    fields = (
        text_field("written", "pronunciation.written"),
        text_field("spoken", "pronunciation.spoken", "pronunciation.spoken_hint"),
        text_field("pronunciation_note", "pronunciation.note"),
    )
    return details("pronunciation.fix", row(*fields) + row(button(FIX, "pronunciation.fix")), elem_id)


def fix(request: PanelRequest) -> None:
    """Store the correction in the project, and say how it sounds."""
    written, spoken, why = map(request.text, FIX_FIELDS)
    if not written.strip() or not spoken.strip():
        raise InputError("no_word")
    project = request.project
    language = read_language(project.dataset)
    heard = add_pronunciation(project.pronunciations, written, spoken, why, language=language)
    notify("pronunciation.fixed", written=written.strip(), heard=heard)
