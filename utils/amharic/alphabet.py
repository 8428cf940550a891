"""The letters of Amharic: fidel, the phones it stands for, one-letter codes for the rules, Latin letters for the model.

A code word is a string of codes: `betoc:` is bet-ot͡ʃː. A sixth-order letter contributes its consonant alone; `:` after
a consonant makes it geminate, `W` makes it labialised. One letter a phone lets regular expressions and `str.translate`
do the work that would be slow in Python.

In Latin letters a geminate is its whole symbol twice (`tt`, `t't'`). `|` separates two equal phones that are not a
geminate, and `_` escapes a character that is not a phone but looks like a symbol. `phonemize` produces neither from
normalized Amharic.
"""

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache

from utils.amharic.tables import rows

# --- phones and their codes ---

CONSONANTS = {
    "p": "p", "t": "t", "k": "k", "b": "b", "d": "d", "ɡ": "g", "tʼ": "T", "kʼ": "K", "pʼ": "P", "sʼ": "S",
    "t͡ʃ": "c", "t͡ʃʼ": "C", "d͡ʒ": "J", "f": "f", "v": "v", "s": "s", "z": "z", "ʃ": "X", "ʒ": "Z", "h": "h",
    "m": "m", "n": "n", "ɲ": "N", "l": "l", "r": "r", "w": "w", "j": "y", "ʔ": "H",
}  # fmt: skip
VOWELS = {"ə": "E", "u": "u", "i": "i", "a": "a", "e": "e", "ɨ": "I", "o": "o"}
PHONES = CONSONANTS | VOWELS

CONSONANT_CODES = "".join(CONSONANTS.values())
VOWEL_CODES = frozenset(VOWELS.values())
SLOT = f"[{CONSONANT_CODES}]:?W?"

# What a person types for a phone whose proper letter is on no keyboard.
_LOOSE = str.maketrans({"g": "ɡ", "'": "ʼ", "’": "ʼ", ":": "ː"})
_TOKENS = PHONES | {"ː": ":", "ʷ": "W"}
_TOKEN = re.compile("|".join(sorted(_TOKENS, key=len, reverse=True)))
_IPA = str.maketrans({code: phone for phone, code in PHONES.items()} | {":": "ː", "W": "w"} | dict.fromkeys("<>=|"))


class PronunciationError(ValueError):
    """A pronunciation contains a symbol that is not a phone of Amharic."""


def encode(ipa: str) -> str:
    """Turn phones into codes; `ʷ` marks labialisation, a plain `w` is a phone of its own."""
    codes, end = [], 0
    for match in _TOKEN.finditer(ipa):
        if match.start() != end:
            break
        codes.append(_TOKENS[match[0]])
        end = match.end()
    if end != len(ipa):
        known = " ".join(PHONES)
        raise PronunciationError(f"{ipa!r}: {ipa[end]!r} is not an Amharic phone; use {known}, and ː for length")
    return "".join(codes)


def encode_loosely(ipa: str) -> str:
    """Turn phones as people type them (plain g, straight apostrophe, colon for length) into codes."""
    return encode(ipa.strip().replace("tʃ", "t͡ʃ").replace("dʒ", "d͡ʒ").translate(_LOOSE))


def decode(codes: str) -> str:
    """Turn codes back into phones; word marks (`<`, `>`, `=`, `|`) fall away."""
    return codes.translate(_IPA)


# --- fidel ---

# Every place for a letter in the five Ethiopic blocks, assigned or not: what has no value must be seen, not skipped.
_BLOCKS = ((0x1200, 0x135B), (0x1380, 0x1390), (0x2D80, 0x2DE0), (0xAB00, 0xAB30), (0x1E7E0, 0x1E800))
LETTERS = "".join(f"{chr(start)}-{chr(end - 1)}" for start, end in _BLOCKS)
MARKS = "\u135d-\u135fː"
# A word begins with a letter; stray marks stay outside.
WORD = re.compile(f"([{LETTERS}][{LETTERS}{MARKS}]*)")
ETHIOPIC = "\u1200-\u135a\u135f\u1380-\u138f\u2d80-\u2ddf\uab00-\uab2f"  # in use today, for character classes

_LETTER = re.compile(f"[{LETTERS}]")
# What may stand between a consonant and its mark, the longest first.
_BETWEEN = (*(f"W{vowel}" for vowel in VOWEL_CODES), *VOWEL_CODES, "W")


@cache
def values() -> dict[str, str]:
    """Return the codes of every letter whose value is known."""
    codes = {}
    for first, consonant, vowels in rows("fidel_rows.tsv", columns=3):
        for order, vowel in enumerate(vowels.split()):
            if vowel != "-":
                codes[chr(ord(first) + order)] = encode(consonant + vowel.replace("∅", ""))
    return codes | {letter: encode(phones) for letter, phones in rows("fidel_exceptions.tsv", columns=2)}


@cache
def _table() -> dict[int, str | None]:
    unknown = {code: None for start, end in _BLOCKS for code in range(start, end)}
    # The combining length marks say nothing that Amharic distinguishes; the gemination mark does.
    marks = {0x135D: None, 0x135E: None, 0x135F: ":", ord("ː"): ":"}
    return unknown | {ord(letter): codes for letter, codes in values().items()} | marks


def read(text: str) -> str:
    """Turn Ethiopic letters into codes; a gemination mark moves to its consonant, unknown letters vanish."""
    codes = text.translate(_table())
    if ":" not in codes:
        return codes
    while "::" in codes:
        codes = codes.replace("::", ":")
    for between in _BETWEEN:  # a regular expression takes three times as long over all the verbs
        codes = codes.replace(f"{between}:", f":{between}")
    return codes


def unknown(text: str) -> Counter[str]:
    """Count the Ethiopic letters of a text whose sound is not known."""
    return Counter(letter for letter in _LETTER.findall(text) if letter not in values())


@cache
def _homophones() -> dict[int, str]:
    return {ord(letter): plain for letter, plain in rows("homophones.tsv", columns=2)}


def fold(text: str) -> str:
    return text.translate(_homophones())


_SYLLABLE = re.compile(f"[{CONSONANT_CODES}]W?[{''.join(VOWEL_CODES)}]?")
_GLIDES = {"i": "y", "e": "y", "a": "y", "u": "w", "o": "w"}  # between two vowels


@cache
def _letters() -> dict[str, str]:
    """Return the usual letter of each consonant, alone and with each vowel."""
    usual = sorted(values().items(), key=lambda item: (item[0] > "ᎀ", ord(item[0]) & 7 == 7, item[0]), reverse=True)
    return {codes: fold(letter) for letter, codes in usual if _SYLLABLE.fullmatch(codes)}  # ጓ, not ጏ


def write(codes: str) -> str:
    """Write codes in Ethiopic letters; a vowel without a consonant takes a glide or a glottal stop."""
    letters = _letters()
    written = []
    place = 0
    while place < len(codes):
        if codes[place] in VOWEL_CODES:
            before = codes[place - 1] if place else ""
            written.append(letters[_GLIDES.get(before, "H") + codes[place]])
            place += 1
        else:
            length = next(length for length in (3, 2, 1) if codes[place : place + length] in letters)
            written.append(letters[codes[place : place + length]])
            place += length
    return "".join(written)


# --- Latin letters that the model's vocabulary already has ---

_LATIN_CONSONANTS = {
    "p": "p", "t": "t", "k": "k", "b": "b", "d": "d", "ɡ": "g", "tʼ": "t'", "kʼ": "q", "pʼ": "p'", "sʼ": "s'",
    "t͡ʃ": "č", "t͡ʃʼ": "č'", "d͡ʒ": "j", "f": "f", "v": "v", "s": "s", "z": "z", "ʃ": "š", "ʒ": "ž", "h": "h",
    "m": "m", "n": "n", "ɲ": "ñ", "l": "l", "r": "r", "w": "w", "j": "y", "ʔ": "’",
}  # fmt: skip
_GEMINATES = {phone + "ː": symbol * 2 for phone, symbol in _LATIN_CONSONANTS.items()}
_TO_LATIN = _LATIN_CONSONANTS | {vowel: vowel for vowel in "əuiaeo"} | {"ɨ": "ï"} | _GEMINATES
_FROM_LATIN = {symbol: phone for phone, symbol in _TO_LATIN.items()} | {"|": ""}

# Latin letters that stand for no phone are escaped, so that they are not mistaken for one.
_TO_LATIN |= {sign: "_" + sign for sign in set("".join(_TO_LATIN.values())) - set(_TO_LATIN) | {"_", "|"}}

LATIN_SYMBOLS = frozenset("".join(_FROM_LATIN) + " ") - {"|"}


def _longest_first(symbols: Iterable[str], ejective_pairs: Iterable[str] = ()) -> str:
    # tt before an apostrophe is t and t', not a geminate and a stray sign.
    ordered = sorted(symbols, key=len, reverse=True)
    return "|".join(re.escape(symbol) + "(?!')" * (symbol in ejective_pairs) for symbol in ordered)


_EJECTIVE_PAIRS = {symbol[0] * 2 for symbol in _LATIN_CONSONANTS.values() if symbol.endswith("'")}
# Two equal phones in a row are matched first: t t, but not t tʼ or t t͡ʃ.
_PHONE = re.compile(f"({_longest_first(_LATIN_CONSONANTS)})(?=\\1(?!ʼ|͡))|{_longest_first(_TO_LATIN)}")
_SYMBOL = re.compile(f"_(.)|{_longest_first(_FROM_LATIN, _EJECTIVE_PAIRS)}", re.DOTALL)


def to_latin(phones: str) -> str:
    """Write phones in Latin letters. Everything else is left as it is; `from_latin` is the exact inverse."""
    return _PHONE.sub(lambda match: _TO_LATIN[match[0]] + ("|" if match[1] else ""), phones)


def from_latin(latin: str) -> str:
    return _SYMBOL.sub(lambda match: match[1] or _FROM_LATIN[match[0]], latin)
