"""How a stem that is not listed is said: the template of its skeleton, as often as our own lists show it.

A skeleton is a stem with C for each consonant. The verbs give one template for each class, voice and tense: the stems
of a verb whose radicals are 1, 2, 3, 4. The nouns give the lengths that words of one skeleton have, where nearly all
agree; short nouns are left alone.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from utils.amharic import lexicon, verbs
from utils.amharic.alphabet import CONSONANT_CODES, VOWEL_CODES
from utils.amharic.kinds import NOUN, VERB

_TO_SKELETON = str.maketrans(dict.fromkeys(CONSONANT_CODES + "1234", "C") | {"W": None, ":": None, "I": None})
_CONSONANT = re.compile(f"[{CONSONANT_CODES}]W?")
_SLOT = re.compile(f"([{CONSONANT_CODES}1-4]W?|[{CONSONANT_CODES}1-4])(:?)")
_NEVER_LONG = "hH"
_LEAST_CONSONANTS, _LEAST_WORDS, _LEAST_SHARE = 3, 4, 0.85
_SHORT = 5.0


class Template(NamedTuple):
    """A stem with places for radicals, the kinds of affix that it takes, and how rare it is in its skeleton."""

    codes: str
    kinds: int
    cost: float


def skeleton(stem: str) -> str:
    return stem.translate(_TO_SKELETON)


def fill(template: str, stem: str) -> str | None:
    """Put the consonants of a stem into a template; None if the template has another consonant of its own."""
    consonants = iter(_CONSONANT.findall(stem))
    filled = []
    for code in template.replace("W", ""):
        if code.isdigit():
            filled.append(next(consonants))
        elif code in CONSONANT_CODES:
            if next(consonants) != code:
                return None
            filled.append(code)
        elif code != ":":
            filled.append(code)
        elif filled[-1][0] not in _NEVER_LONG:
            filled[-1] = filled[-1][0] + ":" + filled[-1][1:]
    return "".join(filled)


@cache
def of_verbs() -> dict[str, tuple[Template, ...]]:
    """Return the templates of verb stems by skeleton, the likeliest first."""
    shapes = Counter((root._replace(radicals=_places(root)), root.weak) for root, _, _ in verbs.roots())
    counts: dict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
    for (root, _), count in shapes.items():
        if len(root.radicals) + bool(root.weak) < _LEAST_CONSONANTS:
            continue
        for codes, kinds, _ in verbs.stems(root):
            counts[skeleton(codes)][codes, kinds] += count
    return {shape: tuple(_templates(found)) for shape, found in counts.items()}


def _places(root: verbs.Root) -> tuple[verbs.Radical, ...]:
    """Replace radicals by their numbers; a consonant that belongs to the voice stays."""
    fixed = 1 if root.voice == "T" or (root.group == "V" and root.voice == "a") else 0
    fixed = 1 if root.radicals[0].code == "H" else fixed
    return tuple(
        radical if number <= fixed else radical._replace(code=str(number))
        for number, radical in enumerate(root.radicals, start=1)
    )


def _templates(found: Counter[tuple[str, int]]) -> Iterator[Template]:
    total = found.total()
    for (codes, kinds), count in found.most_common():
        # Two consonants say little: ገላ and ጎመ may be a noun or a verb of any class.
        short = _SHORT * (skeleton(codes).count("C") < _LEAST_CONSONANTS)
        yield Template(codes, kinds, math.log2(total / count) / 2 + short)


@cache
def of_nouns() -> dict[str, str]:
    """Return which consonants are long in nouns, by the pattern of a noun; only where nearly all agree on some."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for key, entries in lexicon.stems().items():
        for entry in entries:
            if entry.kinds & NOUN and not entry.kinds & VERB and entry.source not in {"closed", "verbs"}:
                lengths = lengths_of(entry.codes.lstrip("="))
                for pattern in patterns(key):
                    counts[pattern][lengths] += 1
    likely = {}
    for pattern, found in counts.items():
        lengths, count = found.most_common(1)[0]
        if count >= _LEAST_WORDS and count >= _LEAST_SHARE * found.total():
            likely[pattern] = lengths
    return likely


def lengths_of(codes: str) -> str:
    """Return a sign for each consonant: `:` if it is long, otherwise `.`."""
    return "".join(length or "." for _, length in _SLOT.findall(codes.replace("I", "")))


def patterns(stem: str) -> tuple[str, ...]:
    """Return the patterns of a noun, the most telling first: with its equal consonants, and the bare skeleton."""
    shape = skeleton(stem)
    if shape.count("C") < _LEAST_CONSONANTS:
        return ()
    names: dict[str, str] = {}
    equal = [names.setdefault(consonant, str(len(names))) for consonant in _CONSONANT.findall(stem)]
    return (shape + "".join(equal), shape) if len(names) < len(equal) else (shape,)


def noun(stem: str) -> str | None:
    """Return the codes of an unlisted noun with its long consonants, if its pattern tells."""
    for pattern in patterns(stem):
        if lengths := of_nouns().get(pattern):
            return with_lengths(stem, lengths) if ":" in lengths else None
    return None


def with_lengths(stem: str, lengths: str) -> str:
    signs = iter(lengths)
    return _CONSONANT.sub(
        lambda match: match[0][0] + next(signs, "").strip(".") * (match[0][0] not in _NEVER_LONG) + match[0][1:], stem
    )


def is_vowelless(stem: str) -> bool:
    return VOWEL_CODES.isdisjoint(stem)
