"""Explain a reading: every step from the written text to what the model sees, word by word."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from utils.amharic.alphabet import WORD, decode, read, to_latin, unknown
from utils.amharic.gemination import Marking, mark
from utils.amharic.lexicon import with_overrides
from utils.amharic.normalization import normalize_with_report
from utils.amharic.phonemes import phonemize, plain_punctuation
from utils.amharic.syllables import insert_vowels


@dataclass(frozen=True, slots=True)
class Word:
    """One Ethiopic word: its letters, its phones, and what decided which consonants are geminate."""

    normalized: str
    phones: str
    latin: str
    gemination: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every step of a reading; the counters list what could not be read and what was dropped."""

    written: str
    normalized: str
    phones: str
    latin: str
    words: tuple[Word, ...]
    unknown: Counter[str]
    unspoken: Counter[str]
    dropped: Counter[str]


def explain(text: str, overrides: Mapping[str, str] | None = None) -> Explanation:
    """Follow a text from its written form to what the model reads.

    `unknown` counts Ethiopic letters without a known sound, `unspoken` the digits and foreign letters that are left in
    the phones, `dropped` the signs that normalizing took out.
    """
    normalized, dropped = normalize_with_report(text)
    phones = phonemize(normalized, overrides=overrides)
    return Explanation(
        written=text,
        normalized=normalized,
        phones=phones,
        latin=to_latin(phones),
        words=explain_words(normalized, overrides),
        unknown=unknown(normalized),
        unspoken=Counter(character for character in WORD.sub("", normalized) if character.isalnum()),
        dropped=dropped,
    )


def explain_words(normalized: str, overrides: Mapping[str, str] | None = None) -> tuple[Word, ...]:
    listed = with_overrides(overrides)
    words = WORD.findall(plain_punctuation(normalized))
    markings = [mark(read(word), listed) for word in words]
    spoken = insert_vowels(marking.codes for marking in markings) if words else []
    triples = zip(words, spoken, markings, strict=True)
    return tuple(Word(word, phones, to_latin(phones), reason(marking)) for word, phones, marking in triples)


def reason(marking: Marking) -> str:
    """Say in words what decided the geminates of a word."""
    parts = marking.parts
    if marking.source == "mark":
        return "mark in the text, otherwise " + reason(Marking(marking.codes, parts[0], parts[1:]))
    if marking.source in {"word list", "shape"}:
        return f"word list ({parts[0]})" if marking.source == "word list" else f"shape {parts[0]}"
    if marking.source != "affixes":
        return marking.source
    before, stem, after, *source = parts
    pieces = [decode(before) + "-" if before else "", decode(stem), "-" + decode(after) if after else ""]
    how = f"{source[0]} ({source[1]})" if source else "not listed"
    return f"affixes: {' + '.join(filter(None, pieces))}, stem {how}"
