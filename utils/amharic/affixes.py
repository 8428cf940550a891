"""What may stand before and after a stem: every prefix and every chain of suffixes, with the kinds of stem it takes."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from utils.amharic.alphabet import VOWEL_CODES, encode
from utils.amharic.kinds import NOUN, VERB, mask
from utils.amharic.tables import TableError, rows


class Prefix(NamedTuple):
    """What stands before a stem, and the beginning of the stem that it has swallowed."""

    marked: str
    kinds: int
    swallowed: str
    cost: float
    certain: bool


class Ending(NamedTuple):
    """A chain of suffixes, with the number of those that are certain without a known stem."""

    marked: str
    kinds: int
    cost: float
    certain: int


Lengths = dict[str, tuple[int, ...]]
NO_PREFIX = Prefix("", mask("noun P* G* M*"), "", 0, certain=False)
NO_ENDING = Ending("", mask("C V N"), 0, certain=0)
_COMPOUND, _BEHIND_OBJECTS = mask("I* G*"), 5
_NOUN_CONTEXTS = {"C": "C N", "V": "V", "-a": "-a", "-e": "-e"}


@cache
def prefixes() -> tuple[dict[str, tuple[Prefix, ...]], Lengths]:
    """Return the prefixes by the way they are written, and the lengths of those that begin with a letter."""
    known: dict[str, tuple[Prefix, ...]] = {}
    for phones, kinds, swallowed, cost, certain, _ in rows("prefixes.tsv", columns=6):
        marked = encode(phones)
        prefix = Prefix(marked, mask(kinds), encode(swallowed.strip("∅")), int(cost) / 2, certain == "yes")
        written = marked.replace(":", "")
        known[written] = (*known.get(written, ()), prefix)
    return known, _lengths(known, 0)


@cache
def endings() -> tuple[dict[str, tuple[Ending, ...]], Lengths]:
    """Return every chain of suffixes by the way it is written, and the lengths of those that end in a letter."""
    known: dict[str, dict[str, Ending]] = {}
    for person in _persons():
        # No object follows the auxiliary: ያመጣልኛል is -ልኝ + -al.
        has_auxiliary = "al" in person[0].marked and person[0].kinds & _COMPOUND
        first = _BEHIND_OBJECTS if has_auxiliary else 0
        for ending in _chains([person], is_verb=True, first=first):
            _add(known, ending)
    for context, kinds in _NOUN_CONTEXTS.items():
        start = Ending("", mask(kinds), 0, certain=0)
        for ending in _chains([(start, context)], is_verb=False):
            if ending.marked:
                _add(known, ending)
    merged = {written: tuple(readings.values()) for written, readings in known.items()}
    return merged, _lengths(merged, -1)


def _lengths(known: Iterable[str], place: int) -> Lengths:
    lengths: dict[str, set[int]] = {}
    for written in known:
        if written:
            lengths.setdefault(written[place], set()).add(len(written))
    return {letter: tuple(sorted(found)) for letter, found in lengths.items()}


def _add(known: dict[str, dict[str, Ending]], ending: Ending) -> None:
    """Add an ending; two that sound alike after the same stems are one."""
    readings = known.setdefault(ending.marked.replace(":", "").replace("I", ""), {})
    key = f"{ending.marked} {ending.cost} {ending.certain}"
    if other := readings.get(key):
        ending = other._replace(kinds=other.kinds | ending.kinds)
    readings[key] = ending


def _persons() -> Iterator[tuple[Ending, str]]:
    """Yield the ending of each person of each tense, after strong and after weak stems."""
    weak = {"P": "Pa Pə", "Iy": "Iay", "It": "Iat", "I1": "Ia1", "In": "Ian", "M": "Ma"}
    weak |= {"Jy": "Jay", "Jt": "Jat", "J1": "Ja1", "Jn": "Jan"}
    for kinds, strong, weak_a, weak_e, cost, _ in rows("verb_endings.tsv", columns=6):
        yield _person(kinds, strong, int(cost))
        after_weak = [weak[kind] for kind in kinds.split() if kind in weak]
        if kinds == "P":
            yield _person("Pa", weak_a, int(cost))
            yield _person("Pə", weak_e, int(cost))
        elif after_weak:
            yield _person(" ".join(after_weak), weak_a, int(cost))


def _person(kinds: str, phones: str, cost: int) -> tuple[Ending, str]:
    marked = encode(phones.strip("∅"))
    ending = Ending(marked, mask(kinds), cost / 2, certain=int("al:" in marked))
    return ending, _context(ending.marked)


def _context(marked: str) -> str:
    return "V" if marked[-1:] in VOWEL_CODES else "C"


def _chains(starts: Iterable[tuple[Ending, str]], *, is_verb: bool, first: int = 0) -> list[Ending]:
    """Return the chains that start so, with at most one suffix of each slot from the first on."""
    chains = list(starts)
    singles = _singles(is_verb=is_verb)
    for slot in sorted(slot for slot in singles if slot >= first):
        chains += [
            joined
            for ending, context in chains
            for after, single in singles[slot]
            if (joined := _joined(ending, context, after, single))
        ]
    return [ending for ending, _ in chains]


def _joined(ending: Ending, context: str, after: str, single: Ending) -> tuple[Ending, str] | None:
    kinds = ending.kinds & single.kinds
    marked = ending.marked
    if not kinds:
        return None
    if after.startswith("-"):
        if marked and marked[-1] == after[1]:
            marked = marked[:-1]
        elif marked or context != after:
            return None
    elif after != context:
        return None
    joined = Ending(marked + single.marked, kinds, ending.cost + single.cost, ending.certain + single.certain)
    return joined, _context(joined.marked)


@cache
def _singles(*, is_verb: bool) -> dict[int, list[tuple[str, Ending]]]:
    singles: dict[int, list[tuple[str, Ending]]] = {}
    for slot, stem, after, phones, cost, certain, _ in rows("suffixes.tsv", columns=7):
        try:
            kinds = mask(stem)
        except KeyError as error:
            raise TableError(f"suffixes.tsv: {phones}: no such stem: {stem}; write noun, verb or kinds") from error
        if kinds & (VERB if is_verb else NOUN):
            context = "-" + encode(after[1:]) if after.startswith("-") else after
            ending = Ending(encode(phones), kinds, int(cost) / 2, (certain == "yes") - 2 * (certain == "never"))
            singles.setdefault(int(slot), []).append((context, ending))
    return singles
