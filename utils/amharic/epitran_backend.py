"""The epitran package as an alternative backend, called word by word, with fixes for its known errors.

Fixed in `amh-Ethi-pp`: ኧ (was wa), ጐ ቈ ኰ ኈ (was Cʷe), ሀ ሐ ኀ አ ዐ (was ə), the letters that it leaves as they
are, and ɨ beside kʼ and sʼ, which its list of consonants lacks. Its rules stop after 32 places in a text, so it is
given one word at a time. It marks no gemination and splits every cluster at the end of a word.
"""

import logging
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from utils.amharic.alphabet import decode
from utils.amharic.fidel import WORD, read, values
from utils.amharic.lexicon import spoken_codes
from utils.amharic.syllables import insert_vowels

# epitran's consonants, which its vowel rules must recognise, and the phones that we write for them.
_OURS = {"q": "kʼ", "t͡sʼ": "sʼ", "ʷ": "w"}
_MARKS = re.compile("[\u135d-\u135fː]")


def transcribe(text: str, overrides: Mapping[str, str] | None) -> str:
    """Turn the Ethiopic words of a text into phones as epitran would."""
    pieces = WORD.split(text)
    exact = {read(written): insert_vowels([spoken_codes(said)])[0] for written, said in (overrides or {}).items()}
    pieces[1::2] = [exact.get(read(word)) or _word(word) for word in pieces[1::2]]
    return "".join(pieces)


def _word(word: str) -> str:
    phones: str = _engine().transliterate(_MARKS.sub("", word))
    for theirs, ours in _OURS.items():
        phones = phones.replace(theirs, ours)
    return phones.removeprefix("ʔ")


@cache
def _engine() -> Any:  # noqa: ANN401 - epitran has no types
    engine = _imported().Epitran("amh-Ethi-pp")
    simple = engine.epi
    simple.g2p.update({letter: [_theirs(codes)] for letter, codes in values().items()})
    simple.regexp = re.compile("|".join(map(re.escape, simple.g2p)))
    return engine


def _theirs(codes: str) -> str:
    if codes == "H":
        return "ʔɨ"  # epitran gives እ its vowel here, not by a rule
    phones = decode(codes.replace("W", "ʷ"))
    return phones.replace("kʼ", "q").replace("sʼ", "t͡sʼ")


def _imported() -> Any:  # noqa: ANN401 - epitran has no types
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        import epitran
    except ImportError as error:
        raise ImportError("backend 'epitran' needs the package: pip install epitran; or choose 'rules'") from error
    finally:
        # Importing epitran turns on debug logging for the whole process.
        root.setLevel(level)
        root.handlers[:] = handlers
    return epitran
