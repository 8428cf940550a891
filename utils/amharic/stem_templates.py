"""How a stem that is not listed is said: the template of its skeleton, as often as our own verbs show it.

A skeleton is a stem with C for each consonant. The verbs give one template for each class, voice and tense: the stems
of a verb whose radicals are 1, 2, 3, 4. `data/noun_patterns.tsv` adds those nouns whose pattern tells; the other short
nouns are left alone.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from utils.amharic import verbs
from utils.amharic.alphabet import CONSONANT_CODES, VOWEL_CODES, encode
from utils.amharic.kinds import mask
from utils.amharic.tables import rows

_TO_SKELETON = str.maketrans(dict.fromkeys(CONSONANT_CODES + "12345", "C") | {"W": None, ":": None, "I": None})
_CONSONANT = re.compile(f"[{CONSONANT_CODES}]W?")
_DIGIT = re.compile("([1-5])")
_NEVER_LONG = "hH"
_LEAST_CONSONANTS = 3
_SHORT = 5.0
_STRONG, _WEAK = mask("P"), mask("Pa Pə")


class Template(NamedTuple):
    """A stem with places for radicals, the kinds of affix that it takes, and how rare it is in its skeleton."""

    codes: str
    kinds: int
    cost: float


Templates = dict[str, tuple[Template, ...]]  # by skeleton


def skeleton(stem: str) -> str:
    return stem.translate(_TO_SKELETON)


def fill(template: str, stem: str) -> str | None:
    """Put the consonants of a stem into a template; None if the template has other or equal ones in these places."""
    consonants = iter(_CONSONANT.findall(stem))
    radicals: dict[str, str] = {}
    filled: list[str] = []
    for code in template.replace("W", ""):
        if code == ":":
            if filled[-1][0] not in _NEVER_LONG:
                filled[-1] = filled[-1][0] + ":" + filled[-1][1:]
        elif code.isdigit() or code in CONSONANT_CODES:
            consonant = next(consonants)
            if consonant != (radicals.setdefault(code, consonant) if code.isdigit() else code):
                return None
            filled.append(consonant)
        else:
            filled.append(code)
    return "".join(filled)


@cache
def of_verbs() -> Templates:
    """Return the templates of verb stems by skeleton, the likeliest first."""
    shapes = Counter(root._replace(radicals=_places(root), prefix=_prefix(root)) for root, _, _ in verbs.roots())
    counts: dict[str, Counter[tuple[str, int]]] = defaultdict(Counter)
    for root, count in shapes.items():
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


def _prefix(root: verbs.Root) -> str:
    """Replace the consonant without a vowel of ተንቀሳቀሰ, which is any radical: ተሽቀዳደመ."""
    return root.prefix[:2] + "5" + root.prefix[3:] if root.voice in {"tn", "an"} else root.prefix


def _templates(found: Counter[tuple[str, int]]) -> Iterator[Template]:
    total = found.total()
    for (codes, kinds), count in found.most_common():
        # Two consonants, or three before a vowel, say little: ገላ, ጎመ and ከተማ may be a noun or a verb of any class.
        least = _LEAST_CONSONANTS + (kinds & _WEAK != 0 and not codes.startswith("Has"))
        # Names from abroad have o more often than verbs of three consonants: ኮንሶ, ሞስኮ.
        short = _SHORT * (skeleton(codes).count("C") < least + ("o" in codes and not kinds & _STRONG))
        yield Template(codes, kinds, math.log2(total / count) / 2 + short)


@cache
def of_nouns() -> Templates:
    """Return the patterns of nouns by skeleton."""
    known: Templates = {}
    for phones, cost, _ in rows("noun_patterns.tsv", columns=3):
        codes = "".join(part if part.isdigit() else encode(part) for part in _DIGIT.split(phones))
        template = Template(codes, mask("V" if codes[-1] in VOWEL_CODES else "C"), int(cost) / 2)
        known[skeleton(codes)] = (*known.get(skeleton(codes), ()), template)
    return known


def is_vowelless(stem: str) -> bool:
    return VOWEL_CODES.isdisjoint(stem)
