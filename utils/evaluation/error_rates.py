"""How far what was heard is from what was to be said, counted in letters and words that are spoken alike."""

import unicodedata
from typing import NamedTuple

from utils.amharic.fidel import fold
from utils.core import languages
from utils.core.errors import TextError
from utils.xtts.language_packs import LanguagePack, pack_for


class ErrorRates(NamedTuple):
    """Shares of what was to be said; above 1 when more was heard than there was to say."""

    cer: float
    wer: float


def error_rates(text: str, heard: str, language: str) -> ErrorRates | None:
    """Compare a text with what a recogniser heard; None when the text has nothing to be said.

    Both are written out in words first, in letters that sound alike, without punctuation. Letters are compared without
    the spaces between words, which nobody hears and which Amharic sets in several ways.
    """
    import jiwer

    pack = pack_for(language)
    wanted, found = spoken_words(text, pack), spoken_words(heard, pack)
    if not wanted:
        return None
    letters = jiwer.process_characters("".join(wanted), "".join(found)).cer if found else 1.0
    words = jiwer.process_words(" ".join(wanted), " ".join(found)).wer if found else 1.0
    return ErrorRates(float(letters), float(words))


def spoken_words(text: str, pack: LanguagePack) -> list[str]:
    """Return the words of a text as they are spoken: letters, their marks and digits."""
    try:
        text = pack.normalise(text)
    except TextError:  # what a recogniser writes need not be what a cleaner can read: the bare letters tell enough
        text = " ".join(text.split())
    text = unicodedata.normalize("NFC", text).casefold()
    if pack.code == languages.AMHARIC.code:
        text = fold(text)
    kept = (letter if unicodedata.category(letter)[0] in "LMN" else " " for letter in text)
    return "".join(kept).split()
