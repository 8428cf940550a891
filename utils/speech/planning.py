"""A text of any length to pieces that the model can say at once, and the silence that belongs after each.

Paragraphs are parted into sentences by the language pack, and sentences into pieces counted in the model's own tokens.
Nothing is lost without a word: what holds no letter is left out with a note, and letters that the model cannot read
are refused, all of them in one sentence with their lines.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from utils.config import SpeechConfig
from utils.core import languages
from utils.core.errors import TextError
from utils.dataset.clip import abbreviate
from utils.speech.paragraphs import Paragraph, paragraphs
from utils.speech.types import USUAL
from utils.xtts.tokenizer import TokenizedText, Tokenizer

CLOSING = "\"'”’»)]}」』"
# The share of a sentence's pause that a mark gets.
SHARES = {
    **dict.fromkeys("…", 1.3),
    **dict.fromkeys("።፨፧.?!؟।۔。！？", 1.0),
    **dict.fromkeys("፤;؛；:፦：—–", 0.6),
    **dict.fromkeys(",፣፥،、，", 0.4),
}
BEFORE_MARK = re.compile(r" +(?=[።፧፤፣.?!;,])")
NO_MARK = 0.1  # where a sentence was cut only because it is long
SHOWN = 40  # letters of a text in a message
LONGEST_MESSAGE = 300  # letters; a cleaner may repeat all that it was given


@dataclass(frozen=True)
class Pauses:
    """Seconds of silence after what is said.

    Attributes:
        sentence: After a sentence; its other marks get a share of it.
        paragraph: After a paragraph.
    """

    sentence: float = USUAL.sentence_pause
    paragraph: float = USUAL.paragraph_pause

    @classmethod
    def of(cls, config: SpeechConfig) -> "Pauses":
        """Take what the settings say."""
        return cls(config.sentence_pause, config.paragraph_pause)

    @property
    def chapter(self) -> float:
        """Return the seconds before and after a heading."""
        return 2 * self.paragraph

    def after(self, text: str, *, ends: bool) -> float:
        """Return the seconds after a sentence, or after a part of one.

        Args:
            text: What was said; its last mark counts.
            ends: Whether the sentence ends there, with or without a mark.
        """
        mark = text.rstrip().rstrip(CLOSING)[-1:]
        return round(self.sentence * SHARES.get(mark, 1.0 if ends else NO_MARK), 3)


@dataclass(frozen=True)
class Piece:
    """What the model says at once.

    Attributes:
        reading: What became of its letters on the way to the model.
        paragraph: Number of its paragraph, from 0.
        pause: Seconds of silence after it; none after the last.
        chapter: Title of the chapter that begins with it.
        line: Number of its line in the text, from 1.
    """

    reading: TokenizedText
    paragraph: int
    pause: float
    chapter: str | None = None
    line: int = 1

    @property
    def text(self) -> str:
        """Return it as it was written."""
        return self.reading.written


class Problem(NamedTuple):
    """Something in a text that cannot be said.

    Attributes:
        line: Number of its line, from 1.
        signs: What it is, as it was written.
        refused: Whether the text cannot be spoken for it; otherwise it is left out.
    """

    line: int
    signs: str
    refused: bool


class Plan(NamedTuple):
    """A text ready to be spoken.

    Attributes:
        pieces: What to say, in order.
        notes: What will be left out, in sentences for the user.
    """

    pieces: tuple[Piece, ...]
    notes: tuple[str, ...]


def plan(text: str, tokenizer: Tokenizer, language: str, pauses: Pauses | None = None) -> Plan:
    """Part a text into what the model says at once.

    Args:
        text: Anything that can be written.
        tokenizer: How the model reads.
        language: The language of the text, by any name.
        pauses: How long to be silent; as published by default.

    Raises:
        TextError: It holds nothing that can be said, or letters that the model cannot read.
    """
    parts, problems = _examined(text, tokenizer, language)
    if refused := [problem for problem in problems if problem.refused]:
        raise TextError(
            f"This model cannot read {_where(refused)}.",
            hint=f"Write it in the letters of {languages.find(language).name}, or leave it out.",
        )
    if not parts:
        what = f"Nothing in the text can be spoken: {text[:SHOWN]!r}." if text.strip() else "There is no text to speak."
        raise TextError(what, hint="Write at least one word.")
    pauses = pauses or Pauses()
    pieces = tuple(
        Piece(part.reading, part.paragraph, _pause(part, following, pauses), part.chapter, part.line)
        for part, following in zip_longest(parts, parts[1:])
    )
    return Plan(pieces, (f"Left out, for it cannot be spoken: {_where(problems)}.",) if problems else ())


def speakable(text: str, tokenizer: Tokenizer, language: str) -> tuple[Problem, ...]:
    """Return what in a text cannot be said, in order; nothing is raised for it."""
    return tuple(_examined(text, tokenizer, language)[1])


class _Part(NamedTuple):
    """A piece before it is known what follows it."""

    reading: TokenizedText
    paragraph: int
    sentence: int
    line: int
    heading: bool
    chapter: str | None


def _pause(part: _Part, following: _Part | None, pauses: Pauses) -> float:
    if following is None:
        return 0.0
    if part.paragraph != following.paragraph:
        return pauses.chapter if part.heading or following.heading else pauses.paragraph
    return pauses.after(part.reading.written, ends=part.sentence != following.sentence)


def _examined(text: str, tokenizer: Tokenizer, language: str) -> tuple[list[_Part], list[Problem]]:
    """Read a whole text: its parts with something to say, and what cannot be said."""
    tokenizer.tokenize("", language)  # a language that the model does not speak is no fault of a line
    parts: list[_Part] = []
    problems: list[Problem] = []
    for number, paragraph in enumerate(paragraphs(text)):
        title = paragraph.text if paragraph.heading else None
        for sentence, (line, written) in enumerate(_sentences(paragraph, tokenizer, language)):
            for whole in _readings(written, line, tokenizer, language):
                reading, unread = _without_pictures(whole, line, tokenizer, language)
                problems += unread
                if any(map(str.isalnum, reading.model_text)):
                    parts.append(_Part(reading, number, sentence, line, paragraph.heading, title))
                    title = None
                elif not unread:
                    problems.append(Problem(line, reading.written, refused=False))
    return parts, problems


def _sentences(paragraph: Paragraph, tokenizer: Tokenizer, language: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a paragraph, each with the number of its line."""
    place = 0
    for sentence in tokenizer.pack(language).split(paragraph.text):
        found = paragraph.text.find(sentence, place)
        place = max(place, found)
        yield paragraph.line_at(place), sentence
        place += len(sentence) if found >= 0 else 0


def _readings(sentence: str, line: int, tokenizer: Tokenizer, language: str) -> list[TokenizedText]:
    try:
        return tokenizer.tokenize_parts(sentence, language)
    except TextError as error:
        raise TextError(f"Line {line}: {error.message[:LONGEST_MESSAGE]}", hint=error.hint) from error


def _without_pictures(
    reading: TokenizedText, line: int, tokenizer: Tokenizer, language: str
) -> tuple[TokenizedText, list[Problem]]:
    """Leave out the signs without sound that the model cannot read; letters that it cannot read stay, to be refused."""
    unread = "".join(reading.unknown)
    pictures = {sign for sign in unread if unicodedata.category(sign)[0] not in "LN"}
    drawn = {sign for sign in reading.written if unicodedata.category(sign) == "So"}
    if not unread and not drawn:
        return reading, []
    again = tokenizer.tokenize(_without(reading.written, pictures | drawn), language)
    if drawn - pictures and again.model_text != reading.model_text:  # some pictures have a name that is said
        drawn, again = set(), tokenizer.tokenize(_without(reading.written, pictures), language)
    still = [sign for sign in "".join(again.unknown) if sign in pictures]  # made by the front end, not written
    problems = [Problem(line, sign, refused=sign not in pictures or sign in still) for sign in unread]
    return again, [*problems, *(Problem(line, sign, refused=False) for sign in sorted(drawn - pictures))]


def _without(text: str, signs: set[str]) -> str:
    kept = " ".join("".join(" " if sign in signs else sign for sign in text).split())
    return BEFORE_MARK.sub("", kept)


def _where(problems: Sequence[Problem]) -> str:
    """List what cannot be said, once each, with the first line it stands on."""
    first: dict[str, int] = {}
    for problem in problems:
        first.setdefault(problem.signs, problem.line)
    return abbreviate(_quoted(first.items()))


def _quoted(signs: Iterable[tuple[str, int]]) -> Iterator[str]:
    return (f"{sign[:SHOWN]} (line {line})" for sign, line in signs)
