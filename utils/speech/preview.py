"""How a model reads a text, known from its vocabulary alone: while somebody types, without loading the model."""

from dataclasses import dataclass

from utils.config import SpeechConfig
from utils.core.errors import AmharicTtsError, TextError
from utils.speech.planning import find_unspeakable, plan
from utils.xtts.tokenizer import TokenizedText, Tokenizer

MAX_LETTERS = 20_000  # read while somebody types


@dataclass(frozen=True)
class TextPreview:
    """How a model reads a text."""

    readings: tuple[TokenizedText, ...] = ()  # of each sentence
    unreadable: tuple[str, ...] = ()  # characters because of which the text is refused
    skipped: tuple[str, ...] = ()  # characters without sound
    max_tokens: int = 0  # of a sentence
    error: AmharicTtsError | None = None  # why the text cannot be spoken
    is_complete: bool = True  # whether all of the text was read


def preview_text(text: str, tokenizer: Tokenizer, language: str) -> TextPreview:
    """Read a text; one that cannot be spoken is read nevertheless, with the reason."""
    pack = tokenizer.pack(language)
    part = text[:MAX_LETTERS]
    error = None
    try:
        readings = tuple(
            sentence.tokenized for sentence in plan(part, tokenizer, SpeechConfig(language=language)).sentences
        )
    except TextError as problem:
        error = problem
        try:
            sentences = pack.split(part)
            readings = tuple(reading for one in sentences for reading in tokenizer.tokenize_parts(one, language))
        except TextError:  # refused by the normalization itself: there is nothing to show
            readings = ()
    problems = find_unspeakable(part, tokenizer, language) if part.strip() else ()
    unreadable = dict.fromkeys(problem.characters for problem in problems if problem.refused)
    skipped = dict.fromkeys(problem.characters for problem in problems if not problem.refused)
    return TextPreview(readings, tuple(unreadable), tuple(skipped), pack.token_limit, error, part == text)
