"""Which consonants are geminate, and why.

Amharic does not write gemination. For each word the first of these that knows decides: a gemination mark in the text,
the project's own list, the word list, a listed stem with affixes, certain affixes and the shape of the word, nothing.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from utils.amharic.alphabet import CONSONANT_CODES, PHONES, SLOT, VOWEL_CODES, encode
from utils.amharic.lexicon import Entry, Words
from utils.amharic.tables import TableError, rows


class Marking(NamedTuple):
    """A code word with its geminates marked, what decided (`mark`, `override`, `word list`, …), and its parts."""

    codes: str
    source: str
    parts: tuple[str, ...] = ()


class Prefix(NamedTuple):
    """What may stand before a stem of so many consonants, and the beginning of the stem that it has swallowed."""

    written: str
    marked: str
    kind: str
    swallowed: str
    min_consonants: int
    certain: bool


class Suffix(NamedTuple):
    """A chain of suffixes as spoken, for a stem with this many consonants; a certain one needs no known stem."""

    marked: str
    min_consonants: int
    certain: bool


# The readings of one written chain: after a verb or not, and after what: C, V or the vowel it swallows.
Readings = dict[tuple[bool, str], Suffix]
NO_SUFFIX: Readings = {(verb, after): Suffix("", 2, certain=False) for verb in (False, True) for after in "CV"}

_SHORTEST_STEM = 2
_LETTER = re.compile(f"([{CONSONANT_CODES}])(:?)")
_CLUSTER = re.compile(f"({SLOT})(?={SLOT})")
_NEGATIVE = frozenset({"Hal", "Hay", "Hat", "Han"})
_COMMANDS = frozenset({"Hay", "Hat"})  # without -ም: አይሂድ, አትሂድ
_Ending = tuple[str, Readings]


def mark(word: str, words: Words) -> Marking:
    """Mark the geminates of a code word; those marked already stay so, the others are decided as ever."""
    if ":" not in word:
        return _mark(word, words)
    marking = _mark(word.replace(":", ""), words)
    return Marking(_with_lengths(marking.codes, word), "mark", (marking.source, *marking.parts))


def _with_lengths(codes: str, marked: str) -> str:
    """Make those consonants geminate that are so in another marking of the same word."""
    lengths = iter([length for _, length in _LETTER.findall(marked)])
    return _LETTER.sub(lambda match: match[1] + (next(lengths, "") or match[2]), codes)


def _mark(word: str, words: Words) -> Marking:
    if entry := words.get(word):
        return Marking(entry.codes, _list_name(entry), (entry.source,))
    if "WE" in word:  # ጐበኘ is another spelling of ጎበኘ
        marking = _mark(word.replace("WE", "o"), words)
        return marking._replace(codes=_with_lengths(word, marking.codes))
    # The chains of suffixes that the word may end in, shortest first.
    known, longest = suffixes()
    starts = range(len(word) - 1, max(len(word) - longest, 1) - 1, -1)
    endings = [(word[start:], readings) for start in starts if (readings := known.get(word[start:]))]
    return _by_stem(word, endings, words) or _by_affix(word, endings) or _by_shape(word) or Marking(word, "none")


def _list_name(entry: Entry) -> str:
    return "override" if entry.source == "override" else "word list"


def _by_stem(word: str, endings: list[_Ending], words: Words) -> Marking | None:
    """Find the longest listed stem inside the word; a glottal stop that a prefix has swallowed does not count."""
    best, longest = None, _SHORTEST_STEM - 1
    for prefix in (None, *_beginnings(word)):
        rest = word[len(prefix.written) :] if prefix else word
        swallowed = prefix.swallowed if prefix else ""
        for ending, readings in (("", NO_SUFFIX), *endings) if prefix else endings:
            stem = swallowed + rest[: len(rest) - len(ending)]
            length = len(stem) - swallowed.startswith("H")
            if length <= longest:
                break
            match = _find_stem(stem, readings, words)
            if match and _fits(prefix, *match):
                best, longest = _joined(prefix, *match), length
    return best


def _beginnings(word: str) -> Iterator[Prefix]:
    """Yield the prefixes that the word may begin with, longest first."""
    known, lengths = prefixes()
    for length in lengths:
        yield from known.get(word[:length], ())


def _find_stem(stem: str, readings: Readings, words: Words) -> tuple[Entry, str, Suffix] | None:
    """Return the entry of a stem, its codes and the suffix after them, if the list has it."""
    if entry := words.get(stem):
        context = _context(stem)
        suffix = readings.get((entry.is_verb, context))
        if not suffix and entry.is_verb and _is_noun_too(stem):
            suffix = readings.get((False, context))
        if suffix:
            return entry, entry.codes, suffix
    for (is_verb, vowel), swallowing in readings.items():
        if vowel not in "CV" and (entry := words.get(stem + vowel)) and entry.is_verb == is_verb:
            return entry, entry.codes[:-1], swallowing
    return None


def _is_noun_too(verb: str) -> bool:
    """Return whether a verb form is an infinitive (መስበር) or an agent (ሰባሪ), which take the suffixes of nouns."""
    return verb.startswith("m") or verb.endswith("i")


def _context(stem: str) -> str:
    return "V" if stem[-1] in VOWEL_CODES else "C"


def _fits(prefix: Prefix | None, entry: Entry, codes: str, suffix: Suffix) -> bool:
    if prefix and prefix.kind == "verb" and not entry.is_verb:
        return False
    written = prefix.written if prefix else ""
    if suffix.marked.endswith("m"):
        if entry.is_verb and written not in _NEGATIVE and not _is_noun_too(entry.codes):
            return False
    elif written in _NEGATIVE - _COMMANDS:
        return False
    return _consonants(codes) >= max(suffix.min_consonants, prefix.min_consonants if prefix else 0)


def _consonants(codes: str) -> int:
    return len(_LETTER.findall(codes))


def _joined(prefix: Prefix | None, entry: Entry, codes: str, suffix: Suffix) -> Marking:
    stem, end, before = codes.lstrip("="), suffix.marked, ""
    if prefix:
        before = prefix.marked
        stem = stem[len(prefix.swallowed) :]
        if not entry.is_verb and stem[0] != "H" and _CLUSTER.match(stem):
            # A noun keeps its first vowel after a prefix: የልጅ jəlɨd͡ʒ, although jəld͡ʒ could be said.
            stem = _CLUSTER.sub(r"\1I", stem, count=1)
        if prefix.written in _NEGATIVE and end.endswith("m"):
            end += ":"
    return Marking(before + stem + end, "affixes", (before, codes, end, _list_name(entry), entry.source))


def _by_affix(word: str, endings: list[_Ending]) -> Marking | None:
    """Mark affixes that are certain although the stem is not listed."""
    before, stem, end = "", word, ""
    for prefix in _beginnings(word):
        rest = word[len(prefix.written) :]
        if prefix.certain and _consonants(rest) >= _SHORTEST_STEM:
            before, stem = prefix.marked, rest
            break
    for ending, readings in reversed(endings):
        rest = stem[: len(stem) - len(ending)]
        suffix = readings.get((False, _context(rest))) if rest else None
        # ፍጥነት and እምነት are no *ፍጥ-ነት, *እም-ነት: a stem without a vowel needs a consonant more.
        if suffix and suffix.certain and _consonants(rest) >= suffix.min_consonants + VOWEL_CODES.isdisjoint(rest):
            stem, end = rest, suffix.marked
            break
    if not before and not end:
        return None
    shape = None if end else _by_shape(stem)
    stem = shape.codes if shape else stem
    return Marking(before + stem + end, "affixes", (before, stem, end))


def _by_shape(word: str) -> Marking | None:
    for shape, name in _shapes().get(word[-1:], ()):
        if match := shape.fullmatch(word):
            return Marking(f"{match[1]}:{match[2]}", "shape", (name,))
    return None


@cache
def _shapes() -> dict[str, list[tuple[re.Pattern[str], str]]]:
    """Return the shapes by the last letter of the words they fit, in the order of the file."""
    parts = PHONES | {"C": f"[{CONSONANT_CODES}]W?", "...": ".*"}
    part = re.compile("|".join(re.escape(name) for name in sorted(parts, key=len, reverse=True)))
    shapes: dict[str, list[tuple[re.Pattern[str], str]]] = {}
    for name, _ in rows("shapes.tsv", columns=2):
        head, tail = ("".join(parts[token] for token in part.findall(half)) for half in name.split("ː"))
        shape = re.compile(f"({head})(?<![hH])({tail})")  # ʔ and h are never geminate
        last = part.findall(name.replace("ː", ""))[-1]
        for letter in CONSONANT_CODES if last == "C" else parts[last]:
            shapes.setdefault(letter, []).append((shape, name))
    return shapes


@cache
def prefixes() -> tuple[dict[str, list[Prefix]], list[int]]:
    """Return the prefixes by the way they are written, and the lengths of those, the longest first."""
    known: dict[str, list[Prefix]] = {}
    for phones, kind, swallowed, min_consonants, certain, _ in rows("prefixes.tsv", columns=6):
        marked = encode(phones)
        written, lost = marked.replace(":", ""), encode(swallowed.replace("∅", ""))
        known.setdefault(written, []).append(Prefix(written, marked, kind, lost, int(min_consonants), certain == "yes"))
    return known, sorted(set(map(len, known)), reverse=True)


@cache
def suffixes() -> tuple[dict[str, Readings], int]:
    """Return every chain of suffixes, at most one from each slot, by the way it is written, and the longest length."""
    known: dict[str, Readings] = {}
    for is_verb in (False, True):
        chains: list[tuple[str, str, Suffix]] = []  # what it stands after, how it is written, how it is said
        singles = _singles(is_verb=is_verb)
        for slot in sorted({single[0] for single in singles}):
            here = [single[1:] for single in singles if single[0] == slot]
            chains += here + [
                (first_after, head + tail, _chained(first, second))
                for first_after, head, first in chains
                for after, tail, second in here
                if after == _context(head)
            ]
        for after, written, suffix in chains:
            known.setdefault(written, {}).setdefault((is_verb, after), suffix)
    return known, max(map(len, known))


def _chained(first: Suffix, second: Suffix) -> Suffix:
    min_consonants = max(first.min_consonants, second.min_consonants)
    return Suffix(first.marked + second.marked, min_consonants, first.certain or second.certain)


def _singles(*, is_verb: bool) -> list[tuple[int, str, str, Suffix]]:
    singles = []
    for slot, kind, after, phones, min_consonants, certain, _ in rows("suffixes.tsv", columns=7):
        if kind not in {"noun", "verb"}:
            raise TableError(f"suffixes.tsv: {phones}: the stem is {kind!r}; write noun or verb")
        if (kind == "verb") == is_verb:
            marked = encode(phones)
            context = encode(after[1:]) if after.startswith("-") else after
            written = marked.replace(":", "").replace("I", "")  # the ɨ of a suffix is heard, not written
            singles.append((int(slot), context, written, Suffix(marked, int(min_consonants), certain == "yes")))
    return singles
