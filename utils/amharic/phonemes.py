"""Text to phones: `phonemize`, with the rules, with epitran, or the letters themselves.

The epitran package is called word by word, because its rules stop after 32 places in a text, and with fixes for known
errors of `amh-Ethi-pp`: ኧ (was wa), ጐ ቈ ኰ ኈ (was Cʷe), ሀ ሐ ኀ አ ዐ (was ə), the letters that it leaves as they are,
and ɨ beside kʼ and sʼ, which its list of consonants lacks. It marks no gemination and splits every cluster at the end
of a word.
"""

import logging
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from utils.amharic.alphabet import MARKS, WORD, decode, read, values
from utils.amharic.context import read_words
from utils.amharic.lexicon import spoken_codes, with_overrides
from utils.amharic.syllables import insert_vowels

# The model's vocabulary has no Ethiopic punctuation. Quotation marks are not spoken and may be missing from it; in
# Latin mode an apostrophe is a letter.
_PUNCTUATION = str.maketrans(
    {"፠": None, "፡": " ", "።": ".", "፣": ",", "፤": ";", "፥": ":", "፦": ":", "፧": "?", "፨": "."}
    | dict.fromkeys("\"'‘’“”")
)
# All quotation marks as one, which tells the context what is quoted.
_QUOTES = str.maketrans(dict.fromkeys("\"'‘’“”«»", '"'))
_INNER_QUOTE = re.compile(r'(?<=\w)"+(?=\w)|(?<=\s)"+(?=\w)|^"+(?=\w)')
# epitran's consonants, which its vowel rules must recognise, and the phones that we write for them.
_EPITRAN_PHONES = {"q": "kʼ", "t͡sʼ": "sʼ", "ʷ": "w"}
_LENGTH_MARKS = re.compile(f"[{MARKS}]")

Overrides = Mapping[str, str] | None


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
    if backend not in _BACKENDS:
        raise ValueError(f"unknown backend {backend!r}; choose one of {', '.join(_BACKENDS)}")
    return _BACKENDS[backend](text, overrides)


def plain_punctuation(text: str) -> str:
    """Replace Ethiopic punctuation with its Latin equivalents and drop quotation marks."""
    return text.translate(_PUNCTUATION)


def _with_rules(text: str, overrides: Overrides) -> str:
    stems = with_overrides(overrides)
    pieces = split_words(text)
    if len(pieces) == 1:
        return plain_punctuation(pieces[0])
    # Every second piece is a word. They are read together, because one call for all is far cheaper than one for each.
    codes = read("\n".join(pieces[1::2])).split("\n")
    choices = read_words(codes, stems, pieces[::2])
    pieces[1::2] = insert_vowels(choice.codes for choice in choices)
    pieces[::2] = map(plain_punctuation, pieces[::2])
    return "".join(pieces)


def split_words(text: str) -> list[str]:
    """Split a text into words and what stands between them; quotation marks stay only there."""
    return WORD.split(_INNER_QUOTE.sub("", text.replace("፡", " ").translate(_QUOTES)))


def _with_epitran(text: str, overrides: Overrides) -> str:
    pieces = WORD.split(plain_punctuation(text))
    exact = {read(written): insert_vowels([spoken_codes(said)])[0] for written, said in (overrides or {}).items()}
    pieces[1::2] = [exact.get(read(word)) or _epitran_word(word) for word in pieces[1::2]]
    return "".join(pieces)


_BACKENDS: dict[str, Callable[[str, Overrides], str]] = {
    "rules": _with_rules,
    "epitran": _with_epitran,
    "fidel": lambda text, _: text,  # letters have no pronunciation
}


def _epitran_word(word: str) -> str:
    phones: str = _epitran().transliterate(_LENGTH_MARKS.sub("", word))
    for theirs, ours in _EPITRAN_PHONES.items():
        phones = phones.replace(theirs, ours)
    return phones.removeprefix("ʔ")


@cache
def _epitran() -> Any:  # noqa: ANN401 - epitran has no types
    """Return epitran's engine with our values of the letters."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        import epitran
    except ImportError as error:
        raise ImportError("backend 'epitran' needs the package: pip install epitran; or choose 'rules'") from error
    finally:  # importing epitran turns on debug logging for the whole process
        root.setLevel(level)
        root.handlers[:] = handlers
    engine = epitran.Epitran("amh-Ethi-pp")
    for letter, codes in values().items():
        phones = decode(codes.replace("W", "ʷ")).replace("kʼ", "q").replace("sʼ", "t͡sʼ")
        engine.epi.g2p[letter] = ["ʔɨ" if codes == "H" else phones]  # it gives እ its vowel here, not by a rule
    engine.epi.regexp = re.compile("|".join(map(re.escape, engine.epi.g2p)))
    return engine
