"""Splits a text of any length into sentences that the model can speak, with the pause after each.

Paragraphs are split into sentences by the language pack, and long sentences by the model's token limit. Nothing is
dropped silently: characters without a sound are left out with a note, and letters that the model cannot read are
refused, all of them in one error.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

from utils.config import SpeechConfig
from utils.core import languages
from utils.core.errors import TextError
from utils.dataset.clip import abbreviate
from utils.speech.paragraphs import Paragraph, paragraphs
from utils.speech.types import Sentence
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
NO_MARK = 0.1  # share where a sentence was split only because it is long
MAX_SHOWN = 40  # characters of a text in a message
MAX_MESSAGE = 300  # characters; a text cleaner may repeat all that it was given


class Plan(NamedTuple):
    """A text that is ready to be spoken.

    Attributes:
        sentences: Its sentences, in order.
        notes: What was left out, for the user.
    """

    sentences: tuple[Sentence, ...]
    notes: tuple[str, ...]


class UnspeakableText(NamedTuple):
    """Characters that cannot be spoken.

    Attributes:
        line: Line number, from 1.
        characters: The characters as written.
        refused: Whether the text is refused because of them; otherwise they are left out.
    """

    line: int
    characters: str
    refused: bool


class _Part(NamedTuple):
    """A sentence before it is known what follows it."""

    tokenized: TokenizedText
    paragraph: int
    sentence: int
    line: int
    heading: bool
    chapter: str | None


def plan(text: str, tokenizer: Tokenizer, config: SpeechConfig) -> Plan:
    """Split a text into sentences; each gets a seed of its own, so that it can be spoken again alone.

    Raises:
        TextError: The text has nothing that can be spoken, or letters that the model cannot read.
    """
    parts, problems = _read(text, tokenizer, config.language)
    if refused := [problem for problem in problems if problem.refused]:
        raise TextError(
            f"This model cannot read {_listed(refused)}.",
            hint=f"Write it in the letters of {languages.find(config.language).name}, or remove it.",
        )
    if not parts:
        shown = f"Nothing in the text can be spoken: {text[:MAX_SHOWN]!r}."
        raise TextError(shown if text.strip() else "There is no text to speak.", hint="Write at least one word.")
    sentences = (
        Sentence(
            tokenized=part.tokenized,
            seed=(config.seed + number) % 2**32,
            pause=_pause(part, following, config),
            paragraph=part.paragraph,
            chapter=part.chapter,
            line=part.line,
        )
        for number, (part, following) in enumerate(zip_longest(parts, parts[1:]))
    )
    return Plan(tuple(sentences), (f"Left out because it cannot be spoken: {_listed(problems)}.",) if problems else ())


def find_unspeakable(text: str, tokenizer: Tokenizer, language: str) -> tuple[UnspeakableText, ...]:
    """Return what in a text cannot be spoken, in order."""
    return tuple(_read(text, tokenizer, language)[1])


def _pause(part: _Part, following: _Part | None, config: SpeechConfig) -> float:
    """Return the seconds of silence after a part."""
    if following is None:
        return 0.0
    if part.paragraph != following.paragraph:
        return config.paragraph_pause * (2 if part.heading or following.heading else 1)
    mark = part.tokenized.written.rstrip().rstrip(CLOSING)[-1:]
    sentence_ends = part.sentence != following.sentence
    return round(config.sentence_pause * SHARES.get(mark, 1.0 if sentence_ends else NO_MARK), 3)


def _read(text: str, tokenizer: Tokenizer, language: str) -> tuple[list[_Part], list[UnspeakableText]]:
    """Read a whole text: its parts that can be spoken, and what cannot."""
    tokenizer.tokenize("", language)  # a language that the model does not speak is no problem of a line
    parts: list[_Part] = []
    problems: list[UnspeakableText] = []
    for number, paragraph in enumerate(paragraphs(text)):
        title = paragraph.text if paragraph.heading else None
        for sentence, (line, written) in enumerate(_sentences(paragraph, tokenizer, language)):
            for tokenized in _tokenize(written, line, tokenizer, language):
                readable, unread = _without_symbols(tokenized, line, tokenizer, language)
                problems += unread
                if any(map(str.isalnum, readable.model_text)):
                    parts.append(_Part(readable, number, sentence, line, paragraph.heading, title))
                    title = None
                elif not unread:
                    problems.append(UnspeakableText(line, readable.written, refused=False))
    return parts, problems


def _sentences(paragraph: Paragraph, tokenizer: Tokenizer, language: str) -> Iterator[tuple[int, str]]:
    """Yield the sentences of a paragraph, each with its line number."""
    position = 0
    for sentence in tokenizer.pack(language).split(paragraph.text):
        start = paragraph.text.find(sentence, position)
        position = max(position, start)
        yield paragraph.line_at(position), sentence
        position += len(sentence) if start >= 0 else 0


def _tokenize(sentence: str, line: int, tokenizer: Tokenizer, language: str) -> list[TokenizedText]:
    try:
        return tokenizer.tokenize_parts(sentence, language)
    except TextError as error:
        raise TextError(f"Line {line}: {error.message[:MAX_MESSAGE]}", hint=error.hint) from error


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
        pictures, again = set(), tokenizer.tokenize(_remove(tokenized.written, symbols), language)
    still = [sign for sign in "".join(again.unknown) if sign in symbols]  # made by the front end, not written
    problems = [UnspeakableText(line, sign, refused=sign not in symbols or sign in still) for sign in unread]
    problems += (UnspeakableText(line, sign, refused=False) for sign in sorted(pictures - symbols))
    return again, problems


def _remove(text: str, signs: set[str]) -> str:
    plain = " ".join("".join(" " if sign in signs else sign for sign in text).split())
    return BEFORE_MARK.sub("", plain)


def _listed(problems: Sequence[UnspeakableText]) -> str:
    """List characters once each, with the first line they are on."""
    lines: dict[str, int] = {}
    for problem in problems:
        lines.setdefault(problem.characters, problem.line)
    return abbreviate(f"{characters[:MAX_SHOWN]} (line {line})" for characters, line in lines.items())
