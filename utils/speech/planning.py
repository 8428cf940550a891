"""Splits a text of any length into sentences that the model can speak, with the pause after each.

Paragraphs are split into sentences by the language pack, and long sentences by the model's token limit. Nothing is
dropped silently: characters without a sound are left out with a note, and letters that the model cannot read are
refused, all of them in one error.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, zip_longest
from typing import NamedTuple

from utils.config import SpeechConfig
from utils.core import languages
from utils.core.errors import TextError
from utils.core.facts import Fact
from utils.dataset.clip import abbreviate
from utils.speech.facts import CharactersSkipped, LineError, NothingToSpeakError, UnreadableTextError
from utils.speech.types import Sentence
from utils.xtts.language_packs import LanguagePack
from utils.xtts.tokenizer import TokenizedText, Tokenizer

CLOSING = "\"'”’»)]}」』"
# Share of the sentence pause that a mark gets.
SHARES = {
    **dict.fromkeys("…", 1.3),
    **dict.fromkeys("።፨፧.?!؟।۔。！？", 1.0),
    **dict.fromkeys("፤;؛；:፦：—–", 0.6),
    **dict.fromkeys(",፣፥،、，", 0.4),
}
BEFORE_MARK = re.compile(r" +(?=[።፧፤፣.?!;,])")
SPLIT_SHARE = 0.1  # where a sentence was split only because it is long
MAX_SHOWN = 40  # characters of a text in a message

LINE_BREAK = re.compile("\r\n?")
SURROGATE = re.compile("[\ud800-\udfff]")  # left by a decoder that could not read some bytes
# Invisible format characters; the two joiners (200C, 200D) separate or join letters, so they stay.
INVISIBLE = re.compile(
    "[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
CONTROL = dict.fromkeys((code for code in range(0xA0) if unicodedata.category(chr(code)) == "Cc"), " ") | {10: "\n"}

SPEAKER = re.compile(r"\s*([^\W\d_][^:።፣]{0,29}?)\s*:(?!//)\s*\S")  # a name, as it begins a line of a script
RULE = re.compile(r"\s*(?:([-*_=~#•·])\s*)(?:\1\s*){2,}")  # * * *
BULLET = re.compile(r"^[-*•]\s+")
MARKDOWN = re.compile(r"#{1,6}\s+")
NUMBERS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
    "አንድ|ሁለት|ሦስት|ሶስት|አራት|አምስት|ስድስት|ሰባት|ስምንት|ዘጠኝ|አስር|አሥር|ዐሥር|አስራ|አሥራ|ሃያ|ሀያ|ሰላሳ|ሠላሳ"
)
CHAPTER = re.compile(
    rf"(?:ምዕራፍ|ክፍል|chapter|part)\s+(?:[0-9]+|[፩-፼]+|[ivxlc]+|(?:(?:{NUMBERS})ኛ?\s*)+)(?:\s*[.:፡፦፥—–-].*)?",
    re.IGNORECASE,
)
ENDS = "።፡.!?፧፨…:;፤"  # at the end of a line that was not broken only because it was full

MAX_TITLE = 120  # characters
MIN_FULL = 35  # characters; shorter lines are verse or a list, not the lines of a narrow page
EVEN = 0.7  # of the longest line; every broken line but the last is at least that long


class SpeechPlan(NamedTuple):
    """A text that is ready to be spoken."""

    sentences: tuple[Sentence, ...]
    notes: tuple[Fact, ...]  # what was left out, for the user


class UnspeakableText(NamedTuple):
    """Characters that cannot be spoken."""

    line: int
    characters: str
    refused: bool  # whether the text is refused because of them; otherwise they are left out


class Paragraph(NamedTuple):
    """A paragraph or a heading."""

    text: str  # its text, without white space around the lines
    line: int  # number of its first line, from 1
    starts: Sequence[int] = (0,)  # position of each of its lines in ``text``
    heading: bool = False  # whether it is the title of a chapter


class _Part(NamedTuple):
    """A part of a sentence, with what decides the pause after it."""

    spoken: Sentence
    sentence: int  # number in the paragraph
    heading: bool


def plan(text: str, tokenizer: Tokenizer, config: SpeechConfig) -> SpeechPlan:
    """Split a text into sentences; each gets a seed of its own, so that it can be spoken again alone.

    Raises:
        TextError: The text has nothing that can be spoken, or letters that the model cannot read.
    """
    parts, problems = _read(text, tokenizer, config.language)
    if refused := [problem for problem in problems if problem.refused]:
        raise UnreadableTextError(_list_characters(refused), languages.find(config.language).name)
    if not parts:
        raise NothingToSpeakError
    sentences = tuple(
        replace(part.spoken, seed=(config.seed + number) % 2**32, pause=_pause(part, following, config))
        for number, (part, following) in enumerate(zip_longest(parts, parts[1:]))
    )
    notes = (CharactersSkipped(_list_characters(problems)),) if problems else ()
    return SpeechPlan(sentences, notes)


def split_speakers(text: str, voices: Mapping[str, str]) -> list[tuple[str, str]]:
    """Split a script at lines that begin with the name of a voice and a colon.

    ``voices`` are references by name. Returns the reference and the text of each part; the reference is empty for a
    text without a speaker.
    """
    known = {name.casefold(): reference for name, reference in voices.items()}
    parts: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if colon and (reference := known.get(name.strip().casefold())):
            parts.append((reference, [rest]))
        else:
            parts[-1][1].append(line)
    return [(reference, "\n".join(lines)) for reference, lines in parts if "".join(lines).strip()] or [("", text)]


def unknown_speakers(text: str, voices: Collection[str]) -> list[str]:
    """Return names that no voice has at the beginning of lines, if several lines begin with a name."""
    known = {name.casefold() for name in voices}
    named = [match[1] for line in text.splitlines() if (match := SPEAKER.match(line))]
    return [name for name in dict.fromkeys(named) if len(named) > 1 and name.casefold() not in known]


def find_unspeakable(text: str, tokenizer: Tokenizer, language: str) -> list[UnspeakableText]:
    """Return what in a text cannot be spoken, in order."""
    return _read(text, tokenizer, language)[1]


def _pause(part: _Part, following: _Part | None, config: SpeechConfig) -> float:
    if following is None:
        return 0.0
    if part.spoken.paragraph != following.spoken.paragraph:
        return config.paragraph_pause * (2 if part.heading or following.heading else 1)
    mark = part.spoken.text.rstrip().rstrip(CLOSING)[-1:]
    without_mark = 1.0 if part.sentence != following.sentence else SPLIT_SHARE
    return round(config.sentence_pause * SHARES.get(mark, without_mark), 3)


def _read(text: str, tokenizer: Tokenizer, language: str) -> tuple[list[_Part], list[UnspeakableText]]:
    tokenizer.tokenize("", language)  # a language that the model does not speak is no problem of a line
    parts = list[_Part]()
    problems = list[UnspeakableText]()
    for number, paragraph in enumerate(paragraphs(text)):
        title = paragraph.text if paragraph.heading else None
        for sentence, (line, written) in enumerate(_sentences(paragraph, tokenizer.pack(language))):
            try:
                tokenized_parts = tokenizer.tokenize_parts(written, language)
            except TextError as error:
                raise LineError(line, error) from error
            for tokenized in tokenized_parts:
                readable, unread = _without_symbols(tokenized, line, tokenizer, language)
                problems += unread
                if any(map(str.isalnum, readable.model_text)):
                    spoken = Sentence(readable, paragraph=number, chapter=title, line=line)
                    parts.append(_Part(spoken, sentence, paragraph.heading))
                    title = None
                elif not unread:
                    problems.append(UnspeakableText(line, readable.written, refused=False))
    return parts, problems


def _sentences(paragraph: Paragraph, pack: LanguagePack) -> Iterator[tuple[int, str]]:
    position = 0
    for sentence in pack.split(paragraph.text):
        start = paragraph.text.find(sentence, position)
        position = max(position, start)
        yield paragraph.line + bisect_right(paragraph.starts, position) - 1, sentence
        position += len(sentence) if start >= 0 else 0


# Long because a text is read twice, to tell pictures whose names are spoken from the others.
def _without_symbols(
    tokenized: TokenizedText, line: int, tokenizer: Tokenizer, language: str
) -> tuple[TokenizedText, list[UnspeakableText]]:
    """Leave out symbols that the model cannot read; letters that it cannot read stay, to be refused."""
    unread = "".join(tokenized.unknown)
    symbols = {sign for sign in unread if unicodedata.category(sign)[0] not in "LN"}
    pictures = {sign for sign in tokenized.written if unicodedata.category(sign) == "So"}
    if not unread and not pictures:
        return tokenized, []
    again = tokenizer.tokenize(_remove(tokenized.written, symbols | pictures), language)
    if pictures - symbols and again.model_text != tokenized.model_text:  # some pictures have a name that is spoken
        pictures = set()
        again = tokenizer.tokenize(_remove(tokenized.written, symbols), language)
    still = [sign for sign in "".join(again.unknown) if sign in symbols]  # made by the front end, not written
    problems = [UnspeakableText(line, sign, refused=sign not in symbols or sign in still) for sign in unread]
    problems += (UnspeakableText(line, sign, refused=False) for sign in sorted(pictures - symbols))
    return again, problems


def _remove(text: str, signs: set[str]) -> str:
    plain = " ".join("".join(" " if sign in signs else sign for sign in text).split())
    return BEFORE_MARK.sub("", plain)


def _list_characters(problems: Sequence[UnspeakableText]) -> str:
    """List characters once each, with the first line they are on."""
    lines: dict[str, int] = {}
    for problem in problems:
        lines.setdefault(problem.characters, problem.line)
    return abbreviate(f"{characters[:MAX_SHOWN]} (line {line})" for characters, line in lines.items())


def paragraphs(text: str) -> Iterator[Paragraph]:
    """Split a text at blank lines, at rules such as ``* * *`` and around headings.

    Headings are lines such as ``# Title``, ``Chapter 1`` and ``ምዕራፍ ፩: መግቢያ``. Lines that only a narrow page broke
    are joined; all others end a sentence.
    """
    text = SURROGATE.sub("\N{REPLACEMENT CHARACTER}", LINE_BREAK.sub("\n", text))
    text = INVISIBLE.sub("", text).translate(CONTROL)
    lines: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        stripped = line.strip()
        title = _heading(stripped)
        is_break = not stripped or bool(RULE.fullmatch(stripped))
        if lines and (title or is_break):
            starts = list(accumulate((len(each) + 1 for each in lines[:-1]), initial=0))
            yield Paragraph((" " if _are_wrapped(lines) else "\n").join(lines), number - len(lines), starts)
            lines = []
        if title:
            yield Paragraph(title, number, heading=True)
        elif not is_break:
            lines.append(BULLET.sub("", stripped, count=1))


def _heading(line: str) -> str:
    if match := MARKDOWN.match(line):
        return line[match.end() :].rstrip("# ")
    return line if len(line) <= MAX_TITLE and CHAPTER.fullmatch(line) else ""


def _are_wrapped(lines: Sequence[str]) -> bool:
    """Return whether lines end only because the page was full."""
    longest = max(map(len, lines))
    even = all(len(line) >= EVEN * longest for line in lines[:-1])
    return longest >= MIN_FULL and even and any(line[-1] not in ENDS for line in lines[:-1])
