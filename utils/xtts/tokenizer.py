"""From text to token ids: one way for training, speech and preview."""

import math
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from utils.core import languages
from utils.core.storage import write_atomically
from utils.xtts.facts import FrontEndChanged, FrontEndVersionError, VocabularyFileError
from utils.xtts.files import SETTINGS_FILE, VOCABULARY_FILE
from utils.xtts.language_packs import Backend, LanguagePack, TextMode, fingerprint, pack_for
from utils.xtts.pronunciations import NONE, overrides
from utils.xtts.vocabulary import SPACE, UNKNOWN, Vocabulary, learn_subwords

if TYPE_CHECKING:
    from utils.core.facts import Fact

SUBWORDS = 2000  # reported best for Ethiopic letters; 5,000 was worse
PROBE = 4  # longer sentences, in multiples of the character limit, are split before they are tokenized
FILL = 0.85  # of the token limit, because parts of equal length differ in tokens
MAX_MARKS = 8  # combining marks on one letter
BREAKS = (  # where to split a sentence, best first; ASCII marks also occur in numbers and abbreviations
    re.compile(r"(?:[፤።፧፨؛。；！？।]|[.;?!…](?=[\"'”’»)\]]*\s))[\"'”’»)\]]*"),
    re.compile(r"[፣፥፦،，、：—–]|[,:](?=\s)"),
    re.compile(r"[\s፡]"),
)


class TextSettings(BaseModel):
    """How text of the added language is processed; stored as text.json beside the vocabulary."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    language: str  # canonical code of the added language
    mode: TextMode  # Latin letters, phonemes, or the letters of the language
    backend: Backend
    overrides: dict[str, str]  # custom pronunciations
    pack: str  # name of the language pack
    front_end: str  # fingerprint of the pack's output for its samples
    front_end_version: int = 1
    vocabulary: str  # content hash of vocab.json


@dataclass(frozen=True)
class TokenizedText:
    """A sentence at every step from text to token ids."""

    written: str
    normalised: str  # as stored takes spell it
    phones: str
    model_text: str
    tokens: tuple[str, ...]
    ids: tuple[int, ...]
    unknown: tuple[str, ...]  # symbols missing from the vocabulary


class Tokenizer:
    """A frozen vocabulary with the language packs that prepare its text."""

    def __init__(self, vocabulary: Vocabulary, settings: TextSettings | None = None) -> None:
        self.vocabulary = vocabulary
        self.settings = settings  # of the added language; None for a published model
        self.mode: TextMode = settings.mode if settings else "latin"
        self.notices: tuple[Fact, ...] = ()  # warnings about a loaded model
        self.pronunciations: Path | None = None  # file with those that are added to the model's own
        self._packs: dict[str, tuple[dict[str, str], LanguagePack]] = {}

    @classmethod
    def load(cls, folder: Path, pronunciations: Path | None = None) -> Self:
        """Load vocab.json and text.json of a model and check that they belong together.

        A folder without text.json is a published model with the 17 languages of XTTS. ``pronunciations`` is a file
        whose entries are added when a text is read.
        """
        vocabulary = Vocabulary.load(folder / VOCABULARY_FILE)
        path = folder / SETTINGS_FILE
        if not path.exists():
            return cls(vocabulary)
        try:
            settings = TextSettings.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise VocabularyFileError(str(path), "unreadable", str(error)) from error
        vocabulary.verify(settings.vocabulary)
        tokenizer = cls(vocabulary, settings)
        tokenizer.pronunciations = pronunciations
        pack = tokenizer.pack(settings.language)
        if (pack.name, current := fingerprint(pack)) != (settings.pack, settings.front_end):
            tokenizer.notices = (FrontEndChanged(settings.pack, settings.front_end, current),)
        return tokenizer

    def refuse_older_front_end(self) -> None:
        """Raise if the model was trained with an older version of its front end; it may still speak."""
        if self.settings and (pack := self.pack(self.settings.language)).version > self.settings.front_end_version:
            raise FrontEndVersionError(pack.name, self.settings.front_end_version, pack.version)

    def renewed(self) -> "Tokenizer":
        """Return a tokenizer for a training that begins, which learns the front end of today."""
        if self.settings is None:
            return self
        pack = self.pack(self.settings.language)
        changes = {"front_end": fingerprint(pack), "front_end_version": pack.version}
        return Tokenizer(self.vocabulary, self.settings.model_copy(update=changes))

    def with_pronunciations(self, overrides: Mapping[str, str]) -> "Tokenizer":
        """Return a tokenizer that has these pronunciations too, and stores them."""
        if self.settings is None or overrides.items() <= self.settings.overrides.items():
            return self
        merged = {**self.settings.overrides, **overrides}
        pack = pack_for(self.settings.language, backend=self.settings.backend, overrides=merged)
        changes = {"overrides": merged, "front_end": fingerprint(pack)}
        return Tokenizer(self.vocabulary, self.settings.model_copy(update=changes))

    def with_languages(self, codes: Iterable[str]) -> "Tokenizer":
        """Return a tokenizer that has the tokens of these languages too, which are read in the same mode."""
        vocabulary = self.vocabulary
        for code in codes:
            vocabulary = vocabulary.with_language(languages.find(code).token)
        if self.settings is None or vocabulary is self.vocabulary:
            return self
        return Tokenizer(vocabulary, self.settings.model_copy(update={"vocabulary": vocabulary.hash}))

    def save(self, folder: Path) -> None:
        self.vocabulary.save(folder)
        if self.settings:
            write_atomically(folder / SETTINGS_FILE, self.settings.model_dump_json(indent=2))

    def tokenize(self, text: str, language: str) -> TokenizedText:
        code = languages.canonical(language)
        pack = self.pack(code)
        normalized = pack.normalize(text)
        phones = pack.phonemize(normalized)
        model_text = self._supported(pack.render(normalized, phones, self.mode), pack)
        spoken = languages.find(code)
        if spoken.token not in self.vocabulary.ids:
            raise VocabularyFileError(self.vocabulary.source, "no_language", spoken.token)
        full = spoken.token + model_text.replace(" ", SPACE)
        encoding = self.vocabulary.bpe.encode(full)
        spans = zip(encoding.tokens, encoding.offsets, strict=True)
        unknown = dict.fromkeys(full[start:end] for token, (start, end) in spans if token == UNKNOWN)
        return TokenizedText(
            text, normalized, phones, model_text, tuple(encoding.tokens), tuple(encoding.ids), tuple(unknown)
        )

    def encode(self, text: str, language: str) -> list[int]:
        """Return the token ids of a text; raise when the vocabulary lacks a symbol."""
        result = self.tokenize(text, language)
        if result.unknown:
            symbols = f"{' '.join(result.unknown)} ({text[:60]!r})"
            raise VocabularyFileError(self.vocabulary.source, "no_symbol", symbols)
        return list(result.ids)

    def missing_letters(self, language: str) -> list[str]:
        return self.vocabulary.missing_symbols(self.pack(language).symbols(self.mode))

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of token ids, without the language token."""
        tokens = [self.vocabulary.bpe.id_to_token(number) or UNKNOWN for number in ids]
        special = {SPACE: " ", UNKNOWN: "\N{REPLACEMENT CHARACTER}"}
        return "".join(special.get(token, "" if token in self.vocabulary.special else token) for token in tokens)

    def split(self, text: str, language: str) -> list[str]:
        """Split a text into sentences, and long sentences into parts within the token limit."""
        sentences = self.pack(language).split(text)
        return [part.written for sentence in sentences for part in self.tokenize_parts(sentence, language)]

    def tokenize_parts(self, sentence: str, language: str) -> list[TokenizedText]:
        """Tokenize a sentence in as few parts of equal length as the token limit allows.

        The number of parts for a very long sentence is estimated from its beginning.
        """
        pack = self.pack(language)
        probe = self.tokenize(sentence[: PROBE * pack.character_limit], language)
        rest = len(sentence) > PROBE * pack.character_limit
        if len(sentence) < 2 or (len(probe.ids) <= pack.token_limit and not rest):
            return [probe]
        tokens = len(probe.ids) * max(1, len(sentence) / (PROBE * pack.character_limit))
        count = max(2, math.ceil(tokens / (FILL * pack.token_limit)))
        return [result for part in split_evenly(sentence, count) for result in self.tokenize_parts(part, language)]

    def pack(self, language: str) -> LanguagePack:
        """Return the pack of a language, with the model's settings where it is the added language."""
        code = languages.canonical(language)
        own = self.settings if self.settings and self.settings.language == code else None
        added = overrides(self.pronunciations) if own else NONE
        known = self._packs.get(code)
        if known is None or known[0] is not added:
            backend: Backend = own.backend if own else "rules"
            pack = pack_for(code, backend=backend, overrides={**(own.overrides if own else {}), **added})
            self._packs[code] = known = added, pack
        return known[1]

    def _supported(self, text: str, pack: LanguagePack) -> str:
        """Spell missing symbols with letters of the vocabulary, and unbracket special tokens typed as text."""
        text = " ".join(text.split())
        if "[" in text:
            for token in self.vocabulary.special:
                text = text.replace(token, token[1:-1])
        for symbol in set(text) - self._letters - pack.symbols(self.mode):
            plain = pack.plain(symbol)
            spelling = "".join(letter for letter in plain or "" if letter in self._letters)
            if spelling or plain == "":  # otherwise the symbol stays, to be reported as unknown
                text = text.replace(symbol, spelling)
        return text

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
    """Extend a published vocabulary for a new language, once, before training.

    The training texts are read once, in bounded memory, and only where the mode needs them. With ``allow_missing``, for
    reports, missing letters are not an error.
    """
    pack = pack_for(language, backend=backend, overrides=overrides)
    letters = pack.symbols(mode)
    vocabulary = base.with_language(languages.find(language).token)
    if mode == "latin":
        if not allow_missing and (missing := base.missing_symbols(letters)):
            raise VocabularyFileError(base.source, "no_latin", " ".join(missing))
    elif mode == "ipa":
        vocabulary = vocabulary.with_symbols(letters or _symbols_in(texts, pack))
    else:
        learned = learn_subwords(texts, SUBWORDS, alphabet=filter(str.isalpha, letters), normalize=pack.normalize)
        vocabulary = vocabulary.with_symbols(letters).with_subwords(learned)
    settings = TextSettings(
        language=pack.code,
        mode=mode,
        backend=backend,
        overrides=dict(overrides or {}),
        pack=pack.name,
        front_end=fingerprint(pack),
        front_end_version=pack.version,
        vocabulary=vocabulary.hash,
    )
    return Tokenizer(vocabulary, settings)


def _symbols_in(texts: Iterable[str], pack: LanguagePack) -> set[str]:
    symbols = set()
    for text in texts:
        normalized = pack.normalize(text)
        symbols |= set(pack.render(normalized, pack.phonemize(normalized), "ipa"))
    return symbols


def split_evenly(sentence: str, count: int) -> list[str]:
    """Split a sentence into parts of similar length, best after a clause, else after a comma or a space.

    A split lies within a third of a part from its even position, so no part is much shorter than the others.
    """
    size = len(sentence) / min(count, len(sentence))
    breaks = [[match.end() for match in pattern.finditer(sentence, 1, len(sentence) - 1)] for pattern in BREAKS]
    even = [size * number for number in range(1, min(count, len(sentence)))]
    ends = [_nearest(breaks, position, size / 3) or _between_letters(sentence, position) for position in even]
    return [part for start, end in pairwise([0, *ends, None]) if (part := sentence[start:end].strip())]


def _nearest(breaks: Sequence[Sequence[int]], even: float, distance: float) -> int | None:
    for positions in breaks:
        after = bisect_left(positions, even)
        near = [position for position in positions[max(0, after - 1) : after + 1] if abs(position - even) < distance]
        if near:
            return min(near, key=lambda position: abs(position - even))
    return None


def _between_letters(sentence: str, even: float) -> int:
    """Return a position that does not separate a combining mark from its letter."""
    position = max(1, int(even))
    letters = enumerate(sentence[position : position + MAX_MARKS])
    return position + next((step for step, letter in letters if not unicodedata.category(letter).startswith("M")), 0)
