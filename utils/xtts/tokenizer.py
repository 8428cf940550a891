"""From a written sentence to the ids that the model reads: one way, for training, speech and preview alike."""

import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, ValidationError

from utils.core import languages
from utils.core.errors import VocabularyError
from utils.core.storage import write_atomically
from utils.xtts import subwords
from utils.xtts.files import SETTINGS_FILE, VOCABULARY_FILE
from utils.xtts.language_packs import Backend, LanguagePack, TextMode, fingerprint, pack_for
from utils.xtts.vocabulary import SPACE, UNKNOWN, Vocabulary

SUBWORDS = 2000  # the size others found best for Ethiopic letters; 5 000 was worse
PROBE = 4  # times the usual length of a sentence: what is longer than this is cut before it is read
FILL = 0.85  # of the tokens a part may have, for parts of like length differ in tokens
LONGEST_LETTER = 8  # signs of one letter with its marks; more are no language
PLACES = (  # where a sentence is best cut, best first; the plain marks also stand inside numbers and abbreviations
    re.compile(r"(?:[፤።፧፨؛。；！？।]|[.;?!…](?=[\"'”’»)\]]*\s))[\"'”’»)\]]*"),
    re.compile(r"[፣፥፦،，、：—–]|[,:](?=\s)"),
    re.compile(r"[\s፡]"),
)


class TextSettings(BaseModel):
    """How a model was taught to read its new language; stored beside its vocabulary.

    Attributes:
        language: Canonical code of the language that was added.
        mode: Letters of the Latin alphabet, phonemes, or the letters of the language itself.
        backend: Grapheme-to-phoneme system.
        overrides: The project's own pronunciations.
        pack: Name of the language pack.
        front_end: Fingerprint of what that pack makes of its samples.
        vocabulary: Content hash of vocab.json.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    language: str
    mode: TextMode
    backend: Backend
    overrides: dict[str, str]
    pack: str
    front_end: str
    vocabulary: str


@dataclass(frozen=True)
class TokenizedText:
    """What became of one sentence on its way to the model."""

    written: str
    normalised: str
    phones: str
    model_text: str
    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    unknown: tuple[str, ...]


class Tokenizer:
    """A frozen vocabulary and the language packs in front of it.

    Attributes:
        vocabulary: The tokens.
        settings: How the added language is read; None for a model as published.
        notices: What a user should know about a loaded model, in sentences.
    """

    def __init__(self, vocabulary: Vocabulary, settings: TextSettings | None = None) -> None:
        self.vocabulary = vocabulary
        self.settings = settings
        self.notices: tuple[str, ...] = ()
        self._packs: dict[str, LanguagePack] = {}

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Open the vocabulary and text settings of a model and check that they belong together.

        A folder without text.json is a model as published, which reads the 17 languages of XTTS.
        """
        vocabulary = Vocabulary.load(folder / VOCABULARY_FILE)
        path = folder / SETTINGS_FILE
        if not path.exists():
            return cls(vocabulary)
        try:
            settings = TextSettings.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise VocabularyError(
                f"{path} is damaged: {error}", hint="Copy it again from the model's folder."
            ) from error
        vocabulary.verify(settings.vocabulary)
        tokenizer = cls(vocabulary, settings)
        tokenizer.notices = tuple(differences(settings, tokenizer.pack(settings.language)))
        return tokenizer

    def save(self, folder: Path) -> None:
        """Write vocab.json and text.json."""
        self.vocabulary.save(folder)
        if self.settings:
            write_atomically(folder / SETTINGS_FILE, self.settings.model_dump_json(indent=2))

    def tokenize(self, text: str, language: str) -> TokenizedText:
        """Follow a text through normalising, phonemes and letters to its ids."""
        code = languages.canonical(language)
        pack = self.pack(code)
        normalised = pack.normalise(text)
        phones = pack.phonemise(normalised)
        mode = self.settings.mode if self.settings else "latin"
        read = self._readable(pack.render(normalised, phones, mode), pack, mode)
        entered = self._opening(code) + read.replace(" ", SPACE)
        encoding = self.vocabulary.bpe.encode(entered)
        spans = zip(encoding.tokens, encoding.offsets, strict=True)
        unknown = dict.fromkeys(entered[start:end] for token, (start, end) in spans if token == UNKNOWN)
        return TokenizedText(
            text, normalised, phones, read, tuple(encoding.tokens), tuple(encoding.ids), tuple(unknown)
        )

    def encode(self, text: str, language: str) -> list[int]:
        """Return the ids of a text; a text that the vocabulary cannot hold is refused, never read with gaps."""
        reading = self.tokenize(text, language)
        if reading.unknown:
            raise VocabularyError(
                f"{self.vocabulary.source} has no symbol for {' '.join(reading.unknown)} in {text[:60]!r}.",
                hint="Write these signs in words, or leave them out.",
            )
        return list(reading.ids)

    def missing_letters(self, language: str) -> list[str]:
        """List the letters of the text mode that the vocabulary lacks, whether a text holds them or not."""
        mode = self.settings.mode if self.settings else "latin"
        return self.vocabulary.lacking(self.pack(language).symbols(mode))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the letters that ids stand for, without the language token."""
        tokens = [self.vocabulary.bpe.id_to_token(number) or UNKNOWN for number in ids]
        shown = {SPACE: " ", UNKNOWN: "\N{REPLACEMENT CHARACTER}"}
        return "".join(shown.get(token, "" if token in self.vocabulary.special else token) for token in tokens)

    def split(self, text: str, language: str) -> list[str]:
        """Cut a text into sentences, and these into pieces that the model can read at once."""
        return [
            reading.written
            for sentence in self.pack(language).split(text)
            for reading in self.tokenize_parts(sentence, language)
        ]

    def tokenize_parts(self, sentence: str, language: str) -> list[TokenizedText]:
        """Read a sentence in as few parts of like length as the model can hold; all but white space is kept.

        What is far too long is not read as a whole first: its beginning tells how many tokens a letter takes.
        """
        pack = self.pack(language)
        probe = self.tokenize(sentence[: PROBE * pack.character_limit], language)
        rest = len(sentence) > PROBE * pack.character_limit
        if len(sentence) < 2 or (len(probe.ids) <= pack.token_limit and not rest):
            return [probe]
        tokens = len(probe.ids) * max(1, len(sentence) / (PROBE * pack.character_limit))
        count = max(2, math.ceil(tokens / (FILL * pack.token_limit)))
        return [reading for part in split_evenly(sentence, count) for reading in self.tokenize_parts(part, language)]

    def pack(self, language: str) -> LanguagePack:
        """Return the pack of a language, with the model's own settings where it is the added one."""
        code = languages.canonical(language)
        if code not in self._packs:
            own = self.settings if self.settings and self.settings.language == code else None
            self._packs[code] = pack_for(code, backend=own.backend, overrides=own.overrides) if own else pack_for(code)
        return self._packs[code]

    def _opening(self, code: str) -> str:
        """Return the language token, which has to be in the vocabulary."""
        language = languages.find(code)
        if language.token not in self.vocabulary.ids:
            raise VocabularyError(
                f"{self.vocabulary.source} has no {language.token} token: this model does not speak {language.name}.",
                hint="Choose a model that was trained for it.",
            )
        return language.token

    def _readable(self, read: str, pack: LanguagePack, mode: TextMode) -> str:
        """Spell what the vocabulary lacks with commoner letters, and disarm tokens that were typed as text."""
        read = " ".join(read.split())
        if "[" in read:
            for token in self.vocabulary.special:
                read = read.replace(token, token[1:-1])
        for symbol in set(read) - self._letters - pack.symbols(mode):
            read = read.replace(symbol, self._known(pack.plain(symbol), symbol))
        return read

    def _known(self, plain: str | None, symbol: str) -> str:
        """Return the part of a plain spelling that the vocabulary has, or else the symbol, to be reported."""
        kept = "".join(letter for letter in plain or "" if letter in self._letters)
        return kept if kept or plain == "" else symbol

    @cached_property
    def _letters(self) -> frozenset[str]:
        return frozenset(token for token in self.vocabulary.ids if len(token) == 1) | {" "}


def prepare_tokenizer(
    base: Vocabulary,
    language: str,
    *,
    mode: TextMode = "latin",
    backend: Backend = "rules",
    overrides: Mapping[str, str] | None = None,
    texts: Iterable[str] = (),
    allow_missing: bool = False,
) -> Tokenizer:
    """Make the vocabulary of a new language from a published one, once, before training.

    Args:
        base: The vocabulary as published.
        language: The new language, by any name.
        mode: What the model shall read.
        backend: Grapheme-to-phoneme system.
        overrides: The project's own pronunciations.
        texts: The training text; it is read once, in bounded memory, and only where the mode learns from it.
        allow_missing: Look on even when letters are missing, for a report; training never does.
    """
    pack = pack_for(language, backend=backend, overrides=overrides)
    vocabulary = base.with_language(languages.find(language).token)
    if mode == "latin":
        if not allow_missing:
            refuse_missing(base, pack)
    elif mode == "ipa":
        vocabulary = vocabulary.with_symbols(pack.symbols(mode) or _letters_of(texts, pack))
    else:
        letters = pack.symbols(mode)
        learned = subwords.learn(texts, SUBWORDS, alphabet=filter(str.isalpha, letters), normalise=pack.normalise)
        vocabulary = vocabulary.with_symbols(letters).with_subwords(learned)
    return Tokenizer(vocabulary, settings_for(vocabulary, pack, mode, backend, overrides))


def settings_for(
    vocabulary: Vocabulary, pack: LanguagePack, mode: TextMode, backend: Backend, overrides: Mapping[str, str] | None
) -> TextSettings:
    """Write down how a language is read with a vocabulary."""
    return TextSettings(
        language=pack.code,
        mode=mode,
        backend=backend,
        overrides=dict(overrides or {}),
        pack=pack.name,
        front_end=fingerprint(pack),
        vocabulary=vocabulary.hash,
    )


def differences(settings: TextSettings, pack: LanguagePack) -> Iterator[str]:
    """Say where the front end of today differs from the one a model was trained with."""
    today = fingerprint(pack)
    if (pack.name, today) != (settings.pack, settings.front_end):
        yield (
            f"This model was trained with another version of the {settings.pack} text front end "
            f"({settings.front_end}, now {today}): some words may sound different."
        )


def refuse_missing(base: Vocabulary, pack: LanguagePack) -> None:
    """Refuse a vocabulary that lacks a letter of the Latin spelling."""
    if lacking := base.lacking(pack.symbols("latin")):
        raise VocabularyError(
            f"{base.source} lacks {len(lacking)} symbols of the Latin spelling: {' '.join(lacking)}",
            hint="Use the vocab.json of XTTS v2, or the text mode ipa, which adds symbols.",
        )


def _letters_of(texts: Iterable[str], pack: LanguagePack) -> set[str]:
    found: set[str] = set()
    for text in texts:
        normalised = pack.normalise(text)
        found |= set(pack.render(normalised, pack.phonemise(normalised), "ipa"))
    return found


def split_evenly(sentence: str, count: int) -> list[str]:
    """Cut a sentence into parts of like length: best at a clause, or else at a comma, a space, anywhere.

    A cut lies within a third of a part from its even place, so no part is much shorter than the others.
    """
    size = len(sentence) / min(count, len(sentence))
    kinds = [[match.end() for match in places.finditer(sentence, 1, len(sentence) - 1)] for places in PLACES]
    even = [size * number for number in range(1, min(count, len(sentence)))]
    cuts = [0, *(_nearest(kinds, place, size / 3) or _between_letters(sentence, place) for place in even), None]
    return [part for start, end in pairwise(cuts) if (part := sentence[start:end].strip())]


def _nearest(kinds: Sequence[Sequence[int]], even: float, reach: float) -> int | None:
    """Return the place of the best kind that lies within reach, and there the nearest."""
    for places in kinds:
        after = bisect_left(places, even)
        near = [place for place in places[max(0, after - 1) : after + 1] if abs(place - even) < reach]
        if near:
            return min(near, key=lambda place: abs(place - even))
    return None


def _between_letters(sentence: str, even: float) -> int:
    """Return a place that parts no mark from its letter."""
    place = max(1, int(even))
    signs = enumerate(sentence[place : place + LONGEST_LETTER])
    return place + next((step for step, sign in signs if not unicodedata.category(sign).startswith("M")), 0)
