"""Normalize Amharic text: numbers and abbreviations in words, one spelling per sound, plain punctuation.

A written text is split into sentences at ። ፡፡ ፧ ? ! . and line ends, never inside an abbreviation or a number.
"""

import html
import re
import unicodedata
from collections import Counter
from functools import cache

from utils.amharic.abbreviations import expand_abbreviations
from utils.amharic.alphabet import ETHIOPIC, fold
from utils.amharic.foreign import spell_latin
from utils.amharic.numbers import geez_to_digits, roman_value
from utils.amharic.quantities import read_quantities
from utils.amharic.romanized import decode_rows
from utils.amharic.tables import mapping, rows

# one sign for signs that look alike; the two combining marks of length say nothing that Amharic distinguishes
ALIKE = str.maketrans({
    "\u135d": None, "\u135e": None, "\u00ad": None, "\u200b": None, "\u200c": None, "\u200d": None, "\ufeff": None,
    "\u2010": "-", "\u2011": "-", "\u2012": "-", "‘": "'", "’": "'", "`": "'", "´": "'",
    "“": '"', "”": '"', "«": '"', "»": '"',
    "„": '"', "‹": '"', "›": '"', "…": ".", "⁄": "/", "∕": "/", "\u00a0": " ", "\u2028": "\n", "\u2029": "\n",
    "₀": "0", "₁": "1", "₂": "2", "₃": "3", "₄": "4", "₅": "5", "₆": "6", "₇": "7", "₈": "8", "₉": "9",
})  # fmt: skip
SPOKEN_MARKS = str.maketrans(
    {"።": ".", "፨": ".", "፠": " ", "፣": ",", "፥": ",", "፤": ";", "፦": ":", "፧": "?", "፡": " ", "—": ",", "–": ","}
)
MONTHS = "መስከረም ጥቅምት ኅዳር ህዳር ሕዳር ታኅሣሥ ታህሳስ ታኅሳስ ጥር የካቲት መጋቢት ሚያዝያ ሚያዚያ ግንቦት ሰኔ ሐምሌ ሃምሌ ሀምሌ ነሐሴ ነሀሴ ጳጉሜን ጳጉሜ"
TYPED = re.compile("[0-9፩-፼<–—ኘA-Z]|[:;]-?[()]|እአአ|እኤአ|(?:^| )[የበከለ] ")
ROMAN = re.compile(
    rf"(?P<chapter>(?:ምዕራፍ|ክፍል|ጥራዝ)\s)?(?:(?<=[{ETHIOPIC}]\s)|(?<![^\s(]))(?P<roman>X{{0,3}}(?:IX|IV|V?I{{0,3}}))"
    r"(?![A-Za-z.'’-])(?P<century>\s(?=ክፍለ|ክ[/.]\s?ዘ))?"
)
JOINTS = re.compile("[፡:]")
SENTENCE = re.compile("[፡:]{2}")
LIST = re.compile("[፡:]-(?![0-9])")
BETWEEN_DIGITS = re.compile("(?<=[0-9])፡(?=[0-9])")
PHRASES = (
    (re.compile(r"(?<![0-9:])([0-9]{1,2}):([0-9])(?![0-9:])"), r"\1 ለ \2"),  # a score, or a ratio
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

SENTENCE_END = re.compile(r"(?:[።፧፨?!]|[፡:]{2}|\.)+[\"'”’»)\]]*")
LINE_END = re.compile(r"[\n\r\u2028\u2029]+")
# What is before the dot of an abbreviation: ዓ.ም  አ.አ  J
INSIDE = re.compile(rf"(?:^|[^{ETHIOPIC}A-Za-z])(?:[{ETHIOPIC}A-Za-z]{{1,3}}[./])*[{ETHIOPIC}A-Za-z]$")
SHORT = re.compile(rf"(?:^|[^{ETHIOPIC}])(?:ቁጥ|ገጽ|ምዕ|አን|መዝ|ማቴ|ማር|ሉቃ|ዮሐ|ዘፍ|[{ETHIOPIC}]{{0,2}}ወዘተ)$")
NUMBERED = re.compile(r"(?:^|\s)[0-9፩-፼]{1,2}$")  # 1. the first point of a list
WINDOW = 24  # letters before a stop that decide what it is


def normalize(text: str) -> str:
    """Return a text as it is spoken."""
    return normalize_with_report(text)[0]


def normalize_with_report(text: str) -> tuple[str, Counter[str]]:
    """Return a text as it is spoken, and count what cannot be spoken (emoji and other symbols)."""
    for step in STEPS:
        text = step(text)
    dropped = Counter(FOREIGN_SIGN.findall(text))
    return tidy_spaces(FOREIGN_SIGN.sub(" ", text) if dropped else text), dropped


def compose_unicode(text: str) -> str:
    text = html.unescape(text) if "&" in text else text
    return unicodedata.normalize("NFC", text).translate(ALIKE)


def read_typed_forms(text: str) -> str:
    """Turn what people type into its usual form, by class: markup, dates, scales, numerals of other scripts."""
    if not TYPED.search(text):
        return text
    text = geez_to_digits(ROMAN.sub(_read_roman, text))
    for pattern, meaning in _typed_forms():
        text = pattern.sub(meaning, text)
    return text


@cache
def _typed_forms() -> list[tuple[re.Pattern[str], str]]:
    months = "|".join(MONTHS.split())
    return [
        (
            re.compile(pattern.replace("(M)", f"({months})").replace("E", ETHIOPIC)),
            meaning.replace("∅", "").replace("␣", " "),
        )
        for _, pattern, meaning, _ in rows("typed_forms.tsv", columns=4)
    ]


def _read_roman(match: re.Match[str]) -> str:
    """Read XIX ክፍለ ዘመን and ዮሐንስ IV as ranks, ምዕራፍ III as a number; a single letter only where it must be one."""
    chapter = match["chapter"]
    roman = match["roman"]
    century = match["century"]
    if not roman or (len(roman) == 1 and not chapter and not century):
        return match[0]
    return f"{chapter or ''}{roman_value(roman)}{'ኛው ' if century else '' if chapter else 'ኛ'}"


def join_punctuation(text: str) -> str:
    """Read the two-part Ethiopic marks: a doubled word divider ends a sentence, a divider with a dash opens a list."""
    if not JOINTS.search(text):
        return text
    return BETWEEN_DIGITS.sub(":", LIST.sub("፦", SENTENCE.sub("።", text)))


def speak_sums(text: str) -> str:
    """Say the signs of arithmetic between numbers."""
    for sign, spoken in PHRASES:
        text = sign.sub(spoken, text)
    return text


def speak_signs(text: str) -> str:
    """Say the signs that have a name (&, +, %)."""
    return text.translate(_signs())


@cache
def _signs() -> dict[int, str]:
    return {ord(sign): f" {spoken} " for sign, spoken in mapping("symbols.tsv").items()}


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
    decode_rows,
    read_typed_forms,
    join_punctuation,
    expand_abbreviations,
    speak_sums,
    read_quantities,
    spell_latin,
    speak_signs,
    fold,
    tidy_punctuation,
)


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences; only white space is lost."""
    sentences = []
    for line in LINE_END.split(text):
        start, last = 0, len(line.rstrip())
        for match in SENTENCE_END.finditer(line):
            if match.end() >= last or _ends_sentence(line, match):
                sentences.append(line[start : match.end()].strip())
                start = match.end()
        sentences.append(line[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _ends_sentence(line: str, match: re.Match[str]) -> bool:
    """Return whether a mark ends a sentence; only the plain dot and the doubled colon can mean something else."""
    after = line[match.end() : match.end() + 1]
    if match[0].strip("\"'”’»)]") != ".":
        return match[0] != "::" or not after.isdigit()
    if after and not after.isspace() and not ("\u1200" <= after <= "\u135a"):
        return False  # 3.14, example.com, a mark before a mark
    before = line[max(0, match.start() - WINDOW) : match.start()]
    if NUMBERED.search(before) or INSIDE.search(before) or SHORT.search(before):
        return False
    # The dot of an abbreviation such as ፖ.ሳ.ቁ or ጠ.ሚ.ር stands inside a word, after at most two letters.
    return not after or after.isspace() or len(re.split(rf"[^{ETHIOPIC}]", before)[-1]) > 2
