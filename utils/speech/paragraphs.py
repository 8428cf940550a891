"""A written text to its paragraphs: headings known as such, hard line ends mended, and every line number kept."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

LINE_END = re.compile("\r\n?")
HALF_LETTER = re.compile("[\ud800-\udfff]")  # what a decoder leaves of bytes it could not read
# Signs that steer printing and have no sound; the two joiners (200C, 200D) part or join letters, so they stay.
STEERING = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
CONTROL = dict.fromkeys((code for code in range(0xA0) if unicodedata.category(chr(code)) == "Cc"), " ") | {10: "\n"}

RULE = re.compile(r"\s*(?:([-*_=~#•·])\s*)(?:\1\s*){2,}")  # * * *
BULLET = re.compile(r"[-*•]\s+")
MARKDOWN = re.compile(r"#{1,6}\s+")
WORDS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
    "አንድ|ሁለት|ሦስት|ሶስት|አራት|አምስት|ስድስት|ሰባት|ስምንት|ዘጠኝ|አስር|አሥር|ዐሥር|አስራ|አሥራ|ሃያ|ሀያ|ሰላሳ|ሠላሳ"
)
CHAPTER = re.compile(
    rf"(?:ምዕራፍ|ክፍል|chapter|part)\s+(?:[0-9]+|[፩-፼]+|[ivxlc]+|(?:(?:{WORDS})ኛ?\s*)+)(?:\s*[.:፡፦፥—–-].*)?",
    re.IGNORECASE,
)
ENDS = "።፡.!?፧፨…:;፤"  # of a line that was not broken only because it was full

LONGEST_TITLE = 120  # letters
FULL = 35  # letters; lines shorter than this are verse or a list, not the lines of a narrow page
EVEN = 0.7  # of the longest line that every broken line but the last reaches


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, or a heading.

    Attributes:
        text: Its letters, each line without the white space around it.
        line: Number of its first line in the whole text, from 1.
        starts: Where each of its lines begins in ``text``.
        heading: Whether it is the title of a chapter.
    """

    text: str
    line: int
    starts: tuple[int, ...] = (0,)
    heading: bool = False

    def line_at(self, place: int) -> int:
        """Return the number of the line that holds a place of the text."""
        return self.line + bisect_right(self.starts, place) - 1


def paragraphs(text: str) -> Iterator[Paragraph]:
    """Part a text at blank lines, at rules such as ``* * *`` and around headings.

    Headings are lines such as ``# Title``, ``Chapter 1`` and ``ምዕራፍ ፩: መግቢያ``. Lines that only a narrow page broke
    are joined; all others end a sentence.
    """
    held: list[str] = []
    lines = cleaned(text).split("\n")
    for number, line in enumerate([*lines, ""], 1):
        stripped = line.strip()
        title = heading(stripped)
        if held and (title or not stripped or RULE.fullmatch(stripped)):
            yield _paragraph(held, number - len(held))
            held = []
        if title:
            yield Paragraph(title, number, heading=True)
        elif stripped and not RULE.fullmatch(stripped):
            held.append(BULLET.sub("", stripped, count=1) if BULLET.match(stripped) else stripped)


def heading(line: str) -> str:
    """Return the title that a line is, or nothing."""
    if match := MARKDOWN.match(line):
        return line[match.end() :].rstrip("# ")
    return line if len(line) <= LONGEST_TITLE and CHAPTER.fullmatch(line) else ""


def cleaned(text: str) -> str:
    """Take out what steers printing and has no sound; lines stay where they are."""
    text = HALF_LETTER.sub("\N{REPLACEMENT CHARACTER}", LINE_END.sub("\n", text))
    return STEERING.sub("", text).translate(CONTROL)


def _paragraph(lines: Sequence[str], line: int) -> Paragraph:
    starts = tuple(accumulate((len(one) + 1 for one in lines[:-1]), initial=0))
    return Paragraph((" " if _broken_by_page(lines) else "\n").join(lines), line, starts)


def _broken_by_page(lines: Sequence[str]) -> bool:
    """Tell whether the lines of a paragraph end only because the page was full."""
    longest = max(map(len, lines))
    even = all(len(line) >= EVEN * longest for line in lines[:-1])
    return longest >= FULL and even and any(line[-1] not in ENDS for line in lines[:-1])
