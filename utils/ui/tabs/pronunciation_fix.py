"""Correct how a word is pronounced, beside a preview: shared by the clip editor and the text to speak."""

from utils.core.errors import TextError
from utils.dataset.metadata import read_language
from utils.ui.i18n import t
from utils.ui.page import PanelRequest, notify
from utils.ui.views import button, details, row, text_field
from utils.xtts.pronunciations import add_pronunciation

ACTION = "fix_pronunciation"
FIELDS = ("written", "spoken", "pronunciation_note")


def fix_fields(language: str, elem_id: str) -> str:
    """Return the fields for a word, its pronunciation and a note, with their button."""
    written, spoken, why = (t(f"pronunciation.{name}", language) for name in ("written", "spoken", "note"))
    fields = (
        text_field("written", written),
        text_field("spoken", spoken, t("pronunciation.spoken_hint", language)),
        text_field("pronunciation_note", why),
    )
    label = t("pronunciation.fix", language)
    return details(label, row(*fields) + row(button(ACTION, label)), elem_id)


def fix(request: PanelRequest) -> None:
    """Store the correction in the project, and say how it sounds."""
    written, spoken, why = map(request.text, FIELDS)
    if not written.strip() or not spoken.strip():
        raise TextError("A word or its pronunciation is missing.", hint="Fill in both fields.")
    project = request.project
    heard = add_pronunciation(project, written, spoken, why, language=read_language(project.dataset))
    notify(t("pronunciation.fixed", request.language, written=written.strip(), heard=heard))
