"""The prefixes and the chains of suffixes of `data/prefixes.tsv` and `data/suffixes.tsv`."""

from functools import cache
from typing import NamedTuple

from utils.amharic.alphabet import VOWEL_CODES, encode
from utils.amharic.tables import TableError, rows


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
            (first_after, first_written + written, _joined(first, suffix))
            for first_after, first_written, first in chains
            for after, written, suffix in here
            if after == ("V" if first_written[-1] in VOWEL_CODES else "C")
        ]
        chains += here + longer
    return chains


def _joined(first: Suffix, second: Suffix) -> Suffix:
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
