"""Ethiopic letters: which ones there are, which sound alike, and the consonant and vowel codes they stand for."""

import re
from collections import Counter
from functools import cache

from utils.amharic.alphabet import VOWEL_CODES, encode
from utils.amharic.tables import rows

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
    found = {}
    for first, consonant, vowels in rows("fidel_rows.tsv", columns=3):
        for place, vowel in enumerate(vowels.split()):
            if vowel != "-":
                found[chr(ord(first) + place)] = encode(consonant + vowel.replace("∅", ""))
    return found | {letter: encode(phones) for letter, phones in rows("fidel_exceptions.tsv", columns=2)}


@cache
def _table() -> dict[int, str | None]:
    unknown: dict[int, str | None] = {code: None for start, end in _BLOCKS for code in range(start, end)}
    # The combining length marks say nothing that Amharic distinguishes; the gemination mark does.
    marks: dict[int, str | None] = {0x135D: None, 0x135E: None, 0x135F: ":", ord("ː"): ":"}
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
    known = values()
    return Counter(letter for letter in _LETTER.findall(text) if letter not in known)


@cache
def homophones() -> dict[int, str]:
    """Return the table that gives each letter the spelling used for its sound today."""
    return {ord(letter): plain for letter, plain in rows("homophones.tsv", columns=2)}


def fold(text: str) -> str:
    """Spell letters that sound alike with one letter."""
    return text.translate(homophones())
