"""English words as Amharic speakers say them: spelling to sounds by `data/english_sounds.tsv`, sounds to fidel."""

import re
from functools import cache, lru_cache

from utils.amharic.alphabet import write
from utils.amharic.tables import rows

MACROS = {  # the first contains the second
    "O": "(?:^|(?<=^C)|(?<=^CC)|(?<=^CCC))",
    "C": "[bcdfghjklmnpqrstvwxz]",
    "V": "[aeiouy]",
    "E": "e(?:s|d|r|rs|ly|ment|ments|ful|less|ness)?$",
}
SILENT = "-"
# Amharic names in Latin letters, whose vowels are not those of English: Kebede, Tadesse
ROMANISED = re.compile(r"[A-Z](?=(?:[a-z]*[aeiou]){3})[a-z]*e[b-df-hj-np-tv-z]{1,2}e")
ROMAN_VOWELS = {"e": "E", "a": "a", "i": "i", "o": "o", "u": "u"}


@lru_cache(maxsize=4096)
def say_english(word: str) -> str:
    """Write a word of Latin letters in fidel, by its sounds."""
    plain = word.lower()
    is_name = ROMANISED.fullmatch(word) and not plain.endswith("ese")
    return write(_romanised(plain) if is_name else sounds(plain))


def sounds(word: str) -> str:
    """Return the sounds of an English word in small letters, in the codes of `alphabet`."""
    pattern, codes = _rules()
    return "".join(codes[match.lastindex - 1] for match in pattern.finditer(word) if match.lastindex)


def _romanised(word: str) -> str:
    consonants = re.sub(r"([^aeiou])\1", r"\1", word)
    return "".join(ROMAN_VOWELS.get(letter) or sounds(letter) for letter in consonants)


@cache
def _rules() -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return one pattern with a group for each rule, which the regular expression tries in order, and their sounds."""

    def expand(pattern: str) -> str:
        for name, meaning in MACROS.items():
            pattern = pattern.replace(name, meaning)
        return pattern

    patterns, codes = zip(*rows("english_sounds.tsv", columns=2), strict=True)
    return re.compile("|".join(f"({expand(pattern)})" for pattern in patterns)), tuple(
        "" if code == SILENT else code for code in codes
    )
