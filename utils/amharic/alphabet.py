"""The phones of Amharic, and the one-letter codes with which the rules work on them.

A code word is a string of codes: `betoc:` is bet-ot͡ʃː. A sixth-order letter contributes its consonant alone; `:` after
a consonant makes it geminate, `W` makes it labialised. One letter a phone lets regular expressions and `str.translate`
do the work that would be slow in Python.
"""

import re

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
_IPA = str.maketrans({code: phone for phone, code in PHONES.items()} | {":": "ː", "W": "w"} | dict.fromkeys("<>="))


class PronunciationError(ValueError):
    """A pronunciation holds a symbol that is no phone of Amharic."""


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
        raise PronunciationError(f"{ipa!r}: {ipa[end]!r} is no Amharic phone; write with {known} and ː for length")
    return "".join(codes)


def encode_loosely(ipa: str) -> str:
    """Turn phones as people type them (plain g, straight apostrophe, colon for length) into codes."""
    return encode(ipa.strip().replace("tʃ", "t͡ʃ").replace("dʒ", "d͡ʒ").translate(_LOOSE))


def decode(codes: str) -> str:
    """Turn codes back into phones; word marks (`<`, `>`, `=`) fall away."""
    return codes.translate(_IPA)
