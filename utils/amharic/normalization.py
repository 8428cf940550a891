"""Normalize Amharic text: numbers and abbreviations in words, one spelling per sound, plain punctuation."""

import re
import unicodedata
from collections import Counter
from functools import cache
from typing import NamedTuple

from utils.amharic.abbreviations import expand_abbreviations
from utils.amharic.fidel import ETHIOPIC, fold
from utils.amharic.foreign import spell_latin
from utils.amharic.quantities import read_quantities
from utils.amharic.tables import mapping

# one sign for signs that look alike; the two combining marks of length say nothing that Amharic distinguishes
ALIKE = str.maketrans({
    "\u135d": None, "\u135e": None, "\u00ad": None, "\u200b": None, "\u200c": None, "\u200d": None, "\ufeff": None,
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "‘": "'", "’": "'", "`": "'", "´": "'",
    "“": '"', "”": '"', "«": '"', "»": '"',
    "„": '"', "‹": '"', "›": '"', "…": ".", "⁄": "/", "∕": "/", "\u00a0": " ", "\u2028": "\n", "\u2029": "\n",
})  # fmt: skip
SPOKEN_MARKS = str.maketrans(
    {"።": ".", "፨": ".", "፠": " ", "፣": ",", "፥": ",", "፤": ";", "፦": ":", "፧": "?", "፡": " ", "—": ",", "–": ","}
)
JOINTS = re.compile("[፡:]")
SENTENCE = re.compile("[፡:]{2}")
LIST = re.compile("[፡:]-(?![0-9])")
BETWEEN_DIGITS = re.compile("(?<=[0-9])፡(?=[0-9])")
PHRASES = (
    (re.compile(r"(?<=[0-9])\s?[xX*×]\s?(?=[0-9])"), " ሲባዛ በ"),
    (re.compile(r"(?<=[0-9])\s?÷\s?(?=[0-9])"), " ሲካፈል ለ"),
    (re.compile(r"(?<=[0-9])\s?\+\s?(?=[0-9])"), " ሲደመር "),
    (re.compile(r"(?<=[0-9])\s?[-−]\s?(?=[0-9.]+\s?=)"), " ሲቀነስ "),
)
FOREIGN_SIGN = re.compile(rf"[^\w\s{ETHIOPIC}.,;:?!'\"()-]|_")
SPACES = re.compile(r"\s+")
REPEATED = re.compile(r"([.,;:?!'\"()-])(?:\s*\1)+")
BEFORE_MARK = re.compile(r"\s+([.,;:?!)])")
AFTER_MARK = re.compile(r"([.,;:?!])(?=[^\s.,;:?!'\")-])")
# the dot of an abbreviation, even when it also ended the sentence: last, for only here do all dots look alike
AND_SO_ON = re.compile(rf"(?<![{ETHIOPIC}])([{ETHIOPIC}]{{0,3}}ወዘተ)\.")
DASH = re.compile(r"\s*-\s*")


class Normalized(NamedTuple):
    """A normalized text, and how often each symbol was dropped from it."""

    text: str
    dropped: Counter[str]


def normalize(text: str) -> str:
    """Return a text as it is spoken."""
    return normalize_with_report(text).text


def normalize_with_report(text: str) -> Normalized:
    """Return a text as it is spoken, and count what cannot be spoken (emoji and other symbols)."""
    for step in STEPS:
        text = step(text)
    dropped = Counter(sign for sign in FOREIGN_SIGN.findall(text))
    if dropped:
        text = FOREIGN_SIGN.sub(" ", text)
    return Normalized(tidy_spaces(text), dropped)


def compose_unicode(text: str) -> str:
    """Compose letters, and use one sign for signs that look alike."""
    return unicodedata.normalize("NFC", text).translate(ALIKE)


def join_punctuation(text: str) -> str:
    """Read the two-part Ethiopic marks: a doubled word divider ends a sentence, a divider with a dash opens a list."""
    if not JOINTS.search(text):
        return text
    text = SENTENCE.sub("።", text)
    text = LIST.sub("፦", text)
    return BETWEEN_DIGITS.sub(":", text)


def speak_sums(text: str) -> str:
    """Say the signs of arithmetic between numbers."""
    for sign, spoken in PHRASES:
        text = sign.sub(spoken, text)
    return text


def speak_signs(text: str) -> str:
    """Say the signs that have a name (&, +, %)."""
    return text.translate(_signs())


def tidy_punctuation(text: str) -> str:
    """Turn Ethiopic punctuation into the plain marks that the model knows."""
    return text.translate(SPOKEN_MARKS)


def tidy_spaces(text: str) -> str:
    """Leave one space between words, none before a mark, and no mark twice."""
    text = DASH.sub(" ", text) if "-" in text else text
    text = REPEATED.sub(r"\1", SPACES.sub(" ", text))
    text = AFTER_MARK.sub(r"\1 ", BEFORE_MARK.sub(r"\1", text)).strip()
    return AND_SO_ON.sub(r"\1", text) if "ወዘተ." in text else text


STEPS = (
    compose_unicode,
    join_punctuation,
    expand_abbreviations,
    speak_sums,
    read_quantities,
    spell_latin,
    speak_signs,
    fold,
    tidy_punctuation,
)  # read left to right


@cache
def _signs() -> dict[int, str]:
    return {ord(sign): f" {spoken} " for sign, spoken in mapping("symbols.tsv").items()}
