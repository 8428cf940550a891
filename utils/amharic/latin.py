"""Phones in letters that the model's vocabulary already has, one to one, and back.

A geminate is its whole symbol twice (`tt`, `t't'`). Two equal phones that are no geminate are separated by `|`, and a
character that would read as a symbol although it is no phone has `_` before it; neither happens in what `phonemize`
makes of normalized Amharic.
"""

import re
from collections.abc import Container, Iterable

_CONSONANTS = {
    "p": "p", "t": "t", "k": "k", "b": "b", "d": "d", "ɡ": "g", "tʼ": "t'", "kʼ": "q", "pʼ": "p'", "sʼ": "s'",
    "t͡ʃ": "č", "t͡ʃʼ": "č'", "d͡ʒ": "j", "f": "f", "v": "v", "s": "s", "z": "z", "ʃ": "š", "ʒ": "ž", "h": "h",
    "m": "m", "n": "n", "ɲ": "ñ", "l": "l", "r": "r", "w": "w", "j": "y", "ʔ": "’",
}  # fmt: skip
_VOWELS = {"ə": "ə", "u": "u", "i": "i", "a": "a", "e": "e", "ɨ": "ï", "o": "o"}
_GEMINATES = {phone + "ː": symbol * 2 for phone, symbol in _CONSONANTS.items()}
_TO_LATIN = _CONSONANTS | _VOWELS | _GEMINATES
_FROM_LATIN = {symbol: phone for phone, symbol in _TO_LATIN.items()} | {"|": ""}

# A character of the Latin alphabet that is no phone itself must not read as one.
_ESCAPED = sorted(set("".join(_TO_LATIN.values())) - set(_TO_LATIN) | {"_", "|"})
_TO_LATIN |= {character: "_" + character for character in _ESCAPED}

SYMBOLS = frozenset("".join(_FROM_LATIN) + " ") - {"|"}


def _longest_first(symbols: Iterable[str], ejective_pairs: Container[str] = ()) -> str:
    # tt before an apostrophe is t and t', not a geminate and a stray sign.
    ordered = sorted(symbols, key=len, reverse=True)
    return "|".join(re.escape(symbol) + "(?!')" * (symbol in ejective_pairs) for symbol in ordered)


_EJECTIVE_PAIRS = {symbol[0] * 2 for symbol in _CONSONANTS.values() if symbol.endswith("'")}
# Two equal phones in a row are matched first: t t, but not t tʼ or t t͡ʃ.
_PHONE = re.compile(f"({_longest_first(_CONSONANTS)})(?=\\1(?!ʼ|͡))|{_longest_first(_TO_LATIN)}")
_SYMBOL = re.compile(f"_(.)|{_longest_first(_FROM_LATIN, ejective_pairs=_EJECTIVE_PAIRS)}", re.DOTALL)


def to_latin(phones: str) -> str:
    """Write phones in Latin letters; what is no phone stays, and `from_latin` gives back exactly what went in."""
    return _PHONE.sub(lambda match: _TO_LATIN[match[0]] + ("|" if match[1] else ""), phones)


def from_latin(latin: str) -> str:
    """Read Latin letters back into phones."""
    return _SYMBOL.sub(lambda match: match[1] or _FROM_LATIN[match[0]], latin)
