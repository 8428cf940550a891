"""What a model reads of a text, found without the model: its vocabulary and its metadata are enough."""

import functools
from dataclasses import dataclass
from pathlib import Path

from utils.config import SpeechConfig
from utils.core.errors import AmharicTtsError, ConfigError, TextError
from utils.speech.planning import find_unspeakable, plan
from utils.xtts.files import SETTINGS_FILE, VOCABULARY_FILE
from utils.xtts.tokenizer import TokenizedText, Tokenizer

MOST_LETTERS = 20_000  # read while somebody types; the rest is counted by what these need


@dataclass(frozen=True)
class Seen:
    """What came of a text.

    Attributes:
        readings: Of each sentence.
        unreadable: Signs that the model cannot read, for which the text is refused.
        left_out: Signs without sound, which are skipped.
        limit: Most tokens of a sentence.
        error: Why it cannot be spoken; None when it can.
        whole: Whether all of the text was read.
    """

    readings: tuple[TokenizedText, ...] = ()
    unreadable: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    limit: int = 0
    error: AmharicTtsError | None = None
    whole: bool = True

    @property
    def longest(self) -> int:
        """Return the tokens of the longest sentence."""
        return max((len(one.ids) for one in self.readings), default=0)


def look(text: str, place: str, language: str) -> Seen:
    """Read a text as a model would."""
    try:
        tokenizer = tokenizer_of(place)
        return read(text, tokenizer, language)
    except AmharicTtsError as error:
        return Seen(error=error)


def read(text: str, tokenizer: Tokenizer, language: str) -> Seen:
    """Read a text with a vocabulary; what cannot be spoken is shown nevertheless, its signs marked."""
    limit, part = tokenizer.pack(language).token_limit, text[:MOST_LETTERS]
    try:
        made = plan(part, tokenizer, SpeechConfig(language=language))
        readings, fault = tuple(sentence.tokenized for sentence in made.sentences), None
    except TextError as error:
        readings, fault = _anyway(part, tokenizer, language), error
    problems = find_unspeakable(part, tokenizer, language) if part.strip() else ()
    refused = dict.fromkeys(problem.characters for problem in problems if problem.refused)
    skipped = dict.fromkeys(problem.characters for problem in problems if not problem.refused)
    return Seen(readings, tuple(refused), tuple(skipped), limit, fault, len(part) == len(text))


def _anyway(text: str, tokenizer: Tokenizer, language: str) -> tuple[TokenizedText, ...]:
    try:
        parts = tokenizer.pack(language).split(text)
        return tuple(reading for part in parts for reading in tokenizer.tokenize_parts(part, language))
    except TextError:  # the front end itself refuses it: there is nothing to show
        return ()


def tokenizer_of(place: str) -> Tokenizer:
    """Open the vocabulary of a model by its folder."""
    folder = Path(place).expanduser() if place.strip() else None
    if folder is None:
        raise ConfigError("No model is chosen.", hint="Choose one in the list, or train one first.")
    times = tuple(_time(folder / name) for name in (VOCABULARY_FILE, SETTINGS_FILE))
    if not times[0]:
        raise ConfigError(
            "What this model reads is not known before it is loaded.", hint="Load it, or choose one in the list."
        )
    return _opened(folder, times)


def settings_of(place: str) -> dict[str, str]:
    """Return how a model reads its added language, from its metadata; empty for a model as published."""
    return told_of(tokenizer_of(place))


def told_of(tokenizer: Tokenizer) -> dict[str, str]:
    """Return how a vocabulary is used for its added language."""
    settings = tokenizer.settings
    if settings is None:
        return {}
    return {
        "language": settings.language,
        "mode": settings.mode,
        "backend": settings.backend,
        "overrides": str(len(settings.overrides)),
    }


@functools.lru_cache(maxsize=8)
def _opened(folder: Path, times: tuple[int, ...]) -> Tokenizer:  # noqa: ARG001  # opened again after a change
    return Tokenizer.load(folder)


def _time(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
