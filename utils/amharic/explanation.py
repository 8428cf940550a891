"""Explain a reading: every step from the written text to what the model sees, word by word."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from utils.amharic.alphabet import WORD, decode, read, to_latin, unknown
from utils.amharic.analysis import Reading
from utils.amharic.context import Choice, read_words
from utils.amharic.lexicon import with_overrides
from utils.amharic.normalization import normalize_with_report
from utils.amharic.phonemes import phonemize, split_words
from utils.amharic.syllables import insert_vowels

MAX_READINGS = 6
LIKELIEST = "the likeliest by itself"  # no rule of the sentence has changed the order of the readings


@dataclass(frozen=True, slots=True)
class ExplainedWord:
    """One Ethiopic word: its letters, its phones, what decided how it is read, and the readings that lost."""

    normalized: str
    phones: str
    latin: str
    gemination: str
    others: tuple[tuple[str, str], ...]  # phones and reason of each


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every step of a reading; the counters list what could not be read and what was dropped."""

    written: str
    normalized: str
    phones: str
    latin: str
    words: tuple[ExplainedWord, ...]
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


def explain_words(normalized: str, overrides: Mapping[str, str] | None = None) -> tuple[ExplainedWord, ...]:
    """Explain the words of a normalized text."""
    pieces = split_words(normalized)
    words = pieces[1::2]
    choices = read_words([read(word) for word in words], with_overrides(overrides), pieces[::2])
    spoken = insert_vowels(choice.codes for choice in choices) if words else []
    return tuple(map(_explained, words, spoken, choices))


def _explained(word: str, phones: str, choice: Choice) -> ExplainedWord:
    chosen, *others = choice.readings[:MAX_READINGS]
    lost = insert_vowels(reading.codes for reading in others) if others else []
    why = f"{choice.why}, otherwise " if choice.why == "mark in the text" else ""
    rule = choice.why or (LIKELIEST if others else "")
    why += reason(chosen) + (f"; {rule}" if rule and not why else "")
    return ExplainedWord(word, phones, to_latin(phones), why, tuple(zip(lost, map(reason, others), strict=True)))


def reason(reading: Reading) -> str:
    """Say in words what decided a reading."""
    prefix = reading.prefix.marked
    entry = reading.entry
    ending = reading.ending.marked
    stem = entry.codes.lstrip("=")
    names = {
        "none": "not listed",
        "affixes": "not listed",
        "override": "override",
        "template": f"template {decode(entry.word)}",
        "pattern": f"pattern of nouns {decode(entry.word)}",
    }
    source = names.get(entry.source) or f"{entry.source}: {entry.word}"
    if not prefix and not ending:
        return source if entry.source in names else f"word list ({source})"
    pieces = [decode(prefix) + "-" if prefix else "", decode(stem), "-" + decode(ending) if ending else ""]
    return f"{' + '.join(filter(None, pieces))}, {source}"
