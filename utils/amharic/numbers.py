"""The number grammar: digits, Ge'ez numerals and their words, cardinal and ordinal."""

import re
from collections.abc import Collection
from functools import cache, lru_cache

from utils.amharic.tables import mapping, rows

SCALES = (10**15, 10**12, 10**9, 10**6, 10**3)
HIGHEST_DIGITS = 18  # beyond a thousand quadrillion nobody says a number in words
GEEZ = dict(zip("፩፪፫፬፭፮፯፰፱፲፳፴፵፶፷፸፹፺፻፼", (*range(1, 10), *range(10, 101, 10), 10_000), strict=True))
GEEZ_NUMERAL = re.compile("[፩-፼]+")
ROMAN = {"I": 1, "V": 5, "X": 10}
LONGEST_GEEZ = 24  # letters; longer rows are no numeral


@cache
def words() -> dict[int, tuple[str, str]]:
    """Return the cardinal and the ordinal of every number that is one word."""
    return {int(value): (cardinal, ordinal) for value, cardinal, ordinal in rows("number_words.tsv", columns=3)}


@lru_cache(maxsize=1024)  # a page of figures repeats its small numbers
def cardinal(number: int) -> str:
    """Say a number up to 10^18 in words."""
    return _joined([words()[part][0] for part in _parts(number)])


def ordinal(number: int) -> str:
    """Say a rank: the last word takes its ordinal form; a bare hundred or thousand drops its "one"."""
    parts = _parts(number)
    if len(parts) == 2 and parts[0] == 1:
        parts = parts[1:]
    return _joined([*(words()[part][0] for part in parts[:-1]), words()[parts[-1]][1]])


def _joined(spoken: list[str]) -> str:
    """Join number words; ten changes its ending before a unit, not before a hundred or a thousand."""
    ten, units = words()[10][0], {form for value in range(1, 10) for form in words()[value]}
    pairs = zip(spoken, [*spoken[1:], ""], strict=True)
    return " ".join(ten[:-1] + "ራ" if word == ten and after in units else word for word, after in pairs)


def _parts(number: int) -> list[int]:
    """Split a number into numbers of one word each, in spoken order."""
    if number < 100:
        return [part for part in (number - number % 10, number % 10) if part] or [0]
    scale = next(scale for scale in (*SCALES, 100) if number >= scale)
    rest = number % scale
    return [*_parts(number // scale), scale, *(_parts(rest) if rest else [])]


def say(digits: str) -> str:
    """Say digits as a number; a leading zero or more than eighteen of them are read one by one."""
    if len(digits) > HIGHEST_DIGITS or (digits[0] == "0" and len(digits) > 1):
        return one_by_one(digits)
    return cardinal(int(digits))


def one_by_one(digits: str) -> str:
    """Say each digit by itself, as in telephone numbers and behind the decimal point."""
    return " ".join(words()[int(digit)][0] for digit in digits)


def with_ending(digits: str, ending: str) -> str:
    """Say digits with the letters that stand behind them: ranks (3ኛው), definite (5ቱ, 10ሩ), plural (20ዎቹ)."""
    if ending[0] in "ኛኞ" and len(digits) <= HIGHEST_DIGITS:
        return ordinal(int(digits))[:-1] + ending
    return attach(say(digits), ending)


def attach(word: str, ending: str) -> str:
    """Join a word and an ending; an ending that begins with the word's last consonant takes its place."""
    return word[:-1] + ending if same_consonant(word[-1], ending[0]) else word + ending


def joined_before() -> Collection[str]:
    """Return the prefixes that are written together with figures or Latin words."""
    return mapping("number_prefixes.tsv")


def joined_behind() -> Collection[str]:
    """Return the endings that are written together with figures or Latin words."""
    return mapping("number_suffixes.tsv")


def same_consonant(left: str, right: str) -> bool:
    """Return whether two letters stand in the same row of the fidel, eight code points each."""
    return ord(left) >> 3 == ord(right) >> 3


def geez_to_digits(text: str) -> str:
    return GEEZ_NUMERAL.sub(lambda match: geez_value(match[0]), text)


def roman_value(numeral: str) -> int:
    values = [ROMAN[letter] for letter in numeral]
    return sum(-value if value < after else value for value, after in zip(values, [*values[1:], 0], strict=True))


def geez_value(numeral: str) -> str:
    """Read a numeral by place: pairs below a hundred, joined by ፻ and, every two pairs, by ፼."""
    if len(numeral) > LONGEST_GEEZ:
        return " ".join(words()[GEEZ[letter]][0] if letter != "፼" else cardinal(10_000) for letter in numeral)
    total = hundreds = pair = 0
    for letter in numeral:
        value = GEEZ[letter]
        if value == 10_000:
            group = hundreds + pair
            total = (total + (group or (0 if total else 1))) * value
            hundreds = pair = 0
        elif value == 100:
            hundreds += (pair or 1) * value
            pair = 0
        else:
            pair += value
    return str(total + hundreds + pair)
