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
    least: int
    certain: bool


class Suffix(NamedTuple):
    """A chain of suffixes as it is said, for a stem of so many consonants; a certain one needs no known stem."""

    marked: str
    least: int
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
    found = _mark(word.replace(":", ""), words)
    return Marking(_with_lengths(found.codes, word), "mark", (found.source, *found.parts))


def _with_lengths(codes: str, marked: str) -> str:
    """Make those consonants geminate that are so in another marking of the same word."""
    lengths = iter([length for _, length in _LETTER.findall(marked)])
    return _LETTER.sub(lambda match: match[1] + (next(lengths, "") or match[2]), codes)


def _mark(word: str, words: Words) -> Marking:
    entry = words.get(word)
    if entry:
        return Marking(entry.codes, _name(entry), (entry.source,))
    if "WE" in word:  # ጐበኘ is another spelling of ጎበኘ
        found = _mark(word.replace("WE", "o"), words)
        return found._replace(codes=_with_lengths(word, found.codes))
    endings = _endings(word)
    return _by_stem(word, endings, words) or _by_affix(word, endings) or _by_shape(word) or Marking(word, "none")


def _name(entry: Entry) -> str:
    return "override" if entry.source == "override" else "word list"


def _endings(word: str) -> list[_Ending]:
    """Return the chains of suffixes that the word may end in, shortest first."""
    known, longest = suffixes(), _longest_suffix()
    starts = range(len(word) - 1, max(len(word) - longest, 1) - 1, -1)
    return [(word[start:], readings) for start in starts if (readings := known.get(word[start:]))]


@cache
def _longest_suffix() -> int:
    return max(map(len, suffixes()))


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
            found = _listed(stem, readings, words)
            if found and _fits(prefix, *found):
                best, longest = _joined(prefix, *found), length
    return best


def _beginnings(word: str) -> Iterator[Prefix]:
    """Yield the prefixes that the word may begin with, longest first."""
    known = prefixes()
    for length in _prefix_lengths():
        yield from known.get(word[:length], ())


@cache
def _prefix_lengths() -> list[int]:
    return sorted(set(map(len, prefixes())), reverse=True)


def _listed(stem: str, readings: Readings, words: Words) -> tuple[Entry, str, Suffix] | None:
    """Return the entry of a stem, its codes and the suffix after them, if the list has it."""
    entry = words.get(stem)
    if entry:
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
    negative = prefix is not None and prefix.written in _NEGATIVE
    if suffix.marked.endswith("m"):
        if entry.is_verb and not negative and not _is_noun_too(entry.codes):
            return False
    elif prefix and negative and prefix.written not in _COMMANDS:
        return False
    return _consonants(codes) >= max(suffix.least, prefix.least if prefix else 0)


def _consonants(codes: str) -> int:
    return len(_LETTER.findall(codes))


def _joined(prefix: Prefix | None, entry: Entry, codes: str, suffix: Suffix) -> Marking:
    stem, end = codes.lstrip("="), suffix.marked
    if prefix:
        stem = stem[len(prefix.swallowed) :]
        if not entry.is_verb and stem[0] != "H":
            # A noun keeps its first vowel after a prefix: የልጅ jəlɨd͡ʒ, although jəld͡ʒ could be said.
            stem = _CLUSTER.sub(r"\1I", stem, count=1) if _CLUSTER.match(stem) else stem
        if prefix.written in _NEGATIVE and end.endswith("m"):
            end += ":"
    before = prefix.marked if prefix else ""
    return Marking(before + stem + end, "affixes", (before, codes, end, _name(entry), entry.source))


def _by_affix(word: str, endings: list[_Ending]) -> Marking | None:
    """Mark affixes that are certain although the stem is not listed."""
    before, stem = _certain_prefix(word)
    end = ""
    for ending, readings in reversed(endings):
        rest = stem[: len(stem) - len(ending)]
        suffix = rest and readings.get((False, _context(rest)))
        # ፍጥነት and እምነት are no *ፍጥ-ነት, *እም-ነት: a stem without a vowel needs a consonant more.
        least = suffix.least + VOWEL_CODES.isdisjoint(rest) if suffix else 0
        if suffix and suffix.certain and _consonants(rest) >= least:
            stem, end = rest, suffix.marked
            break
    if not before and not end:
        return None
    shape = None if end else _by_shape(stem)
    stem = shape.codes if shape else stem
    return Marking(before + stem + end, "affixes", (before, stem, end))


def _certain_prefix(word: str) -> tuple[str, str]:
    for prefix in _beginnings(word):
        rest = word[len(prefix.written) :]
        if prefix.certain and _consonants(rest) >= _SHORTEST_STEM:
            return prefix.marked, rest
    return "", word


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
    found: dict[str, list[tuple[re.Pattern[str], str]]] = {}
    for name, _ in rows("shapes.tsv", columns=2):
        before, after = name.split("ː")
        head, tail = ("".join(parts[token] for token in part.findall(half)) for half in (before, after))
        # ʔ and h are never geminate.
        shape = re.compile(f"({head})(?<![hH])({tail})")
        lasts = part.findall(name.replace("ː", ""))[-1]
        for last in CONSONANT_CODES if lasts == "C" else parts[lasts]:
            found.setdefault(last, []).append((shape, name))
    return found


@cache
def prefixes() -> dict[str, list[Prefix]]:
    """Return the prefixes by the way they are written, longer ones first."""
    found: dict[str, list[Prefix]] = {}
    for phones, kind, swallowed, least, certain, _ in rows("prefixes.tsv", columns=6):
        marked, lost = encode(phones), encode(swallowed.replace("∅", ""))
        prefix = Prefix(marked.replace(":", ""), marked, kind, lost, int(least), certain == "yes")
        found.setdefault(prefix.written, []).append(prefix)
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


@cache
def suffixes() -> dict[str, Readings]:
    """Return every chain that the suffixes can form, at most one from each slot, by the way it is written."""
    found: dict[str, Readings] = {}
    for verb in (False, True):
        for after, written, suffix in _chains(verb=verb):
            found.setdefault(written, {}).setdefault((verb, after), suffix)
    return found


def _chains(*, verb: bool) -> list[tuple[str, str, Suffix]]:
    chains: list[tuple[str, str, Suffix]] = []
    singles = _singles(verb=verb)
    for slot in sorted({single[0] for single in singles}):
        here = [single[1:] for single in singles if single[0] == slot]
        longer = [
            (first_after, first_written + written, _chained(first, suffix))
            for first_after, first_written, first in chains
            for after, written, suffix in here
            if after == ("V" if first_written[-1] in VOWEL_CODES else "C")
        ]
        chains += here + longer
    return chains


def _chained(first: Suffix, second: Suffix) -> Suffix:
    return Suffix(first.marked + second.marked, max(first.least, second.least), first.certain or second.certain)


@cache
def _singles(*, verb: bool) -> list[tuple[int, str, str, Suffix]]:
    found = []
    for slot, kind, after, phones, least, certain, _ in rows("suffixes.tsv", columns=7):
        if kind not in {"noun", "verb"}:
            raise TableError(f"suffixes.tsv: {phones}: the stem is {kind!r}; write noun or verb")
        if (kind == "verb") == verb:
            marked = encode(phones)
            context = encode(after[1:]) if after.startswith("-") else after
            # The ɨ of a suffix is heard, not written.
            written = marked.replace(":", "").replace("I", "")
            found.append((int(slot), context, written, Suffix(marked, int(least), certain == "yes")))
    return found
