"""Written text to sentences, at ። ፡፡ ፧ ? ! . and line ends, never inside an abbreviation or a number."""

import re

from utils.amharic.fidel import ETHIOPIC

END = re.compile(r"(?:[።፧፨?!]|[፡:]{2}|\.)+[\"'”’»)\]]*")
LINE = re.compile(r"[\n\r\u2028\u2029]+")
INSIDE = re.compile(rf"(?:^|[^{ETHIOPIC}A-Za-z])(?:[{ETHIOPIC}A-Za-z]{{1,3}}[./])*[{ETHIOPIC}A-Za-z]$")  # ዓ.ም  አ.አ  J
SHORT = re.compile(rf"(?:^|[^{ETHIOPIC}])(?:ቁጥ|ገጽ|ምዕ|አን|መዝ|ማቴ|ማር|ሉቃ|ዮሐ|ዘፍ|[{ETHIOPIC}]{{0,2}}ወዘተ)$")
NUMBERED = re.compile(r"(?:^|\s)[0-9፩-፼]{1,2}$")  # 1. the first point of a list
WINDOW = 24  # letters before a stop that decide what it is


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences; only white space is lost."""
    return [sentence for line in LINE.split(text) for sentence in _split_line(line)]


def _split_line(line: str) -> list[str]:
    sentences, start, last = [], 0, len(line.rstrip())
    for match in END.finditer(line):
        if match.end() >= last or _ends(line, match):
            sentences.append(line[start : match.end()].strip())
            start = match.end()
    return [sentence for sentence in [*sentences, line[start:].strip()] if sentence]


def _ends(line: str, match: re.Match[str]) -> bool:
    """Return whether a mark ends a sentence; only the plain dot and the doubled colon can mean something else."""
    after = line[match.end() : match.end() + 1]
    if match[0].strip("\"'”’»)]") != ".":
        return match[0] != "::" or not after.isdigit()
    if after and not after.isspace() and not ("\u1200" <= after <= "\u135a"):
        return False  # 3.14, example.com, a mark before a mark
    before = line[max(0, match.start() - WINDOW) : match.start()]
    return not (NUMBERED.search(before) or INSIDE.search(before) or SHORT.search(before) or _dotted_word(before, after))


def _dotted_word(before: str, after: str) -> bool:
    """Return whether the dot stands inside an abbreviation such as ፖ.ሳ.ቁ or ጠ.ሚ.ር."""
    return bool(after) and not after.isspace() and len(re.split(rf"[^{ETHIOPIC}]", before)[-1]) <= 2
