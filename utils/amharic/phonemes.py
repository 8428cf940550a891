"""Text to phones: `phonemize`, with the rules, with epitran, or the letters themselves."""

from collections.abc import Callable, Mapping

from utils.amharic.fidel import WORD, read
from utils.amharic.gemination import mark
from utils.amharic.lexicon import with_overrides
from utils.amharic.syllables import insert_vowels

# The model's vocabulary has no Ethiopic punctuation. Quotation marks are not spoken and may be missing from it; in
# Latin mode an apostrophe is a letter.
_PUNCTUATION = str.maketrans(
    {"፠": None, "፡": " ", "።": ".", "፣": ",", "፤": ";", "፥": ":", "፦": ":", "፧": "?", "፨": "."}
    | dict.fromkeys("\"'‘’“”")
)


def phonemize(text: str, backend: str = "rules", overrides: Mapping[str, str] | None = None) -> str:
    """Convert the Ethiopic words of a normalized text to phones; everything else is left in place.

    Args:
        text: Normalized text. Digits and Latin words are left as they are.
        backend: `rules` (ours), `epitran` (the package, with fixes) or `fidel` (the letters themselves).
        overrides: Written form → pronunciation, either phones or Ethiopic letters with ː after each geminate.

    Raises:
        PronunciationError: An override is not an Amharic word, or contains a symbol that is not a phone.
        ValueError: There is no such backend.
    """
    try:
        speak = _BACKENDS[backend]
    except KeyError:
        raise ValueError(f"unknown backend {backend!r}; choose one of {', '.join(_BACKENDS)}") from None
    return speak(text, overrides)


def plain_punctuation(text: str) -> str:
    """Replace Ethiopic punctuation with its Latin equivalents and drop quotation marks."""
    return text.translate(_PUNCTUATION)


def _with_rules(text: str, overrides: Mapping[str, str] | None) -> str:
    words = with_overrides(overrides)
    pieces = WORD.split(plain_punctuation(text))
    if len(pieces) == 1:
        return pieces[0]
    # Every second piece is a word. They are read together, because one call for all is far cheaper than one for each.
    codes = read("\n".join(pieces[1::2])).split("\n")
    pieces[1::2] = insert_vowels(mark(word, words).codes for word in codes)
    return "".join(pieces)


def _with_epitran(text: str, overrides: Mapping[str, str] | None) -> str:
    from utils.amharic.epitran_backend import transcribe

    return transcribe(plain_punctuation(text), overrides)


def _as_letters(text: str, overrides: Mapping[str, str] | None) -> str:  # noqa: ARG001 - letters have no pronunciation
    return text


_BACKENDS: dict[str, Callable[[str, Mapping[str, str] | None], str]] = {
    "rules": _with_rules,
    "epitran": _with_epitran,
    "fidel": _as_letters,
}
