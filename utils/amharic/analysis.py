"""All readings of a word: stem x template x chain of affixes, with features and a weight.

Amharic writes neither length nor ɨ, so one spelling may be several words. The lattice is a dictionary of stems between
a dictionary of prefixes and one of chains of suffixes; a path through it is a reading if the kinds of the three agree,
and its weight is the sum of their costs. Words that are not listed take the template of their skeleton.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from utils.amharic import stem_templates as templates
from utils.amharic.affixes import NO_ENDING, NO_PREFIX, Ending, Prefix, endings, prefixes
from utils.amharic.alphabet import CONSONANT_CODES, SLOT, VOWEL_CODES
from utils.amharic.kinds import NOUN, mask
from utils.amharic.lexicon import Entry, Stems, bare

_LETTER = re.compile(f"([{CONSONANT_CODES}])(:?)")
_CLUSTER = re.compile(f"({SLOT})(?={SLOT})")
_NEGATIVE = frozenset({"Hal", "Hay", "Hat:", "Han:"})
_NEGATIVE_VERBS = frozenset({"የለም", "አይደለም"})
_JUSSIVE = mask("J*")
_UNLISTED_VERB = 9.0
_UNLISTED_NOUN = 13.0
_NOUN_PATTERN = 11.0
# A verb without a template, ያፌዛሉ, keeps the length of affixes that only verbs have; names as in በሚላኖ have an i or o.
_PLAIN_VERB = 14.0
_PLAIN_KINDS = mask("I Ia P Pa G Gp")
_RARE_IN_VERBS = frozenset("io")
_CERTAIN, _LEAST_CONSONANTS = 4.0, 2


class Reading(NamedTuple):
    """One way to read a word: its codes, its weight (a cost: the least is the likeliest), and its parts."""

    codes: str
    cost: float
    prefix: Prefix
    entry: Entry
    ending: Ending
    all_kinds: int  # those of rarer readings that sound alike too

    @property
    def kinds(self) -> int:
        """Return the kinds that prefix, stem and ending agree on."""
        return self.prefix.kinds & self.entry.kinds & self.ending.kinds


def readings(word: str, stems: Stems) -> list[Reading]:
    """Return the readings of a code word, the likeliest first and each pronunciation once."""
    paths = _paths(word, stems) or _unlisted(word)
    found: dict[str, Reading] = {}
    for cost, prefix, entry, ending in sorted(paths, key=lambda path: path[0]):
        codes, kinds = _joined(prefix, entry, ending), prefix.kinds & entry.kinds & ending.kinds
        if other := found.get(codes):
            found[codes] = other._replace(all_kinds=other.all_kinds | kinds)
        else:
            found[codes] = Reading(codes, cost, prefix, entry, ending, kinds)
    return list(found.values())


_Path = tuple[float, Prefix, Entry, Ending]


def _paths(word: str, stems: Stems) -> list[_Path]:
    """Return the paths through the lattice."""
    paths = []
    ends = _ends(word)
    get = stems.get
    for start, before in _starts(word):
        for prefix in before:
            rest = prefix.swallowed + word[start:] if start else word
            cut = len(rest) - len(word)
            for end, after in ends:
                if end + cut <= len(prefix.swallowed):
                    break
                if entries := get(rest[: end + cut]):
                    paths += _agreeing(prefix, entries, after)
    return paths


def _starts(word: str) -> list[tuple[int, tuple[Prefix, ...]]]:
    known, lengths = prefixes()
    found = [(length, known.get(word[:length])) for length in lengths.get(word[:1], ())]
    return [(0, (NO_PREFIX,)), *((length, before) for length, before in found if before)]


def _ends(word: str) -> list[tuple[int, tuple[Ending, ...]]]:
    known, lengths = endings()
    size = len(word)
    found = [(size - length, known.get(word[size - length :])) for length in lengths.get(word[-1:], ())]
    return [(size, (NO_ENDING, *known[""])), *((start, after) for start, after in found if after)]


def _agreeing(prefix: Prefix, entries: Iterable[Entry], after: tuple[Ending, ...]) -> list[_Path]:
    paths = []
    for entry in entries:
        both = prefix.kinds & entry.kinds
        if both:
            cost = prefix.cost + entry.cost
            for ending in after:
                if kinds := both & ending.kinds:
                    more = 0.0 if kinds & NOUN else _of_negation(prefix, ending, kinds)
                    paths.append((cost + ending.cost + more, prefix, entry, ending))
    return paths


def _of_negation(prefix: Prefix, ending: Ending, kinds: int) -> float:
    """Return the cost of a verb in -ም without a negative prefix, or in a negative prefix without -ም."""
    is_negative, has_m = prefix.marked in _NEGATIVE, ending.marked.endswith("m")
    if has_m:
        return -0.5 if is_negative else 2.0
    if is_negative:
        return -1.0 if kinds & _JUSSIVE else 1.5
    return 0.0


# Long because each part changes what it is joined to: end, stem, prefix.
def _joined(prefix: Prefix, entry: Entry, ending: Ending) -> str:
    before = prefix.marked
    codes = entry.codes
    end = ending.marked
    if not end and entry.source == "verbs" and codes.endswith("y:"):  # ይቆያል jɨkʼojːal, but ይቆይ
        codes = codes[:-1]
    if not before and not end:
        return codes
    stem = codes
    if codes[0] == "=":  # what is complete stays so, but for its joints
        stem = _CLUSTER.sub(r"\1|", codes.lstrip("="))
    stem = stem[len(prefix.swallowed) :]
    if end.endswith("m") and (before in _NEGATIVE or entry.word in _NEGATIVE_VERBS):
        end += ":"
    if prefix.kinds & entry.kinds & ending.kinds & NOUN:
        if before and stem[0] != "H" and not prefix.swallowed and _CLUSTER.match(stem):
            # A noun keeps its first vowel after a prefix: የልጅ jəlɨd͡ʒ, although jəld͡ʒ could be said.
            stem = _CLUSTER.sub(r"\1I", stem, count=1)
    elif before.endswith("al") and stem.startswith("l"):
        stem = "l:" + stem[1:].lstrip(":")  # ያልለበሰ jalːəbːəsə
        before = before[:-1]
    return before + stem + end


def _unlisted(word: str) -> list[_Path]:
    """Return readings of a word with a stem that is not listed; the last is the word as it is written."""
    paths = []
    ends = _ends(word)
    for start, before in _starts(word):
        for end, after in ends:
            stem = word[start:end]
            if end - start < 2 or len(_LETTER.findall(stem)) < _LEAST_CONSONANTS:
                break
            candidates = (*_noun_entries(stem), *_verb_entries(stem))
            for prefix in before:
                if prefix.swallowed:
                    stem = prefix.swallowed + stem
                    paths += _weighed(prefix, _verb_entries(stem), after, stem)
                else:
                    paths += _weighed(prefix, candidates, after, stem)
    return paths or [(_UNLISTED_NOUN, NO_PREFIX, _entry(word, mask("C V"), 0, "none"), NO_ENDING)]


def _weighed(prefix: Prefix, entries: Iterable[Entry], after: tuple[Ending, ...], stem: str) -> list[_Path]:
    paths = []
    for cost, _, entry, ending in _agreeing(prefix, entries, after):
        extra = cost - entry.cost  # unlikely persons and rare affixes count twice where the stem is a guess
        certain = max(prefix.certain and entry.source in {"template", "affixes"}, ending.certain)
        if ending.certain and templates.is_vowelless(stem) and len(stem) <= _LEAST_CONSONANTS:
            certain = 0  # ፍጥነት and እምነት are no *ፍጥ-ነት, *እም-ነት
        paths.append((cost + extra - _CERTAIN * certain, prefix, entry, ending))
    return paths


def _noun_entries(stem: str) -> list[Entry]:
    kinds = mask("V" if stem[-1:] in VOWEL_CODES else "C")
    plain = _entry(stem, kinds, _UNLISTED_NOUN, "none")
    return [plain, *_filled(stem, templates.of_nouns(), _NOUN_PATTERN, "pattern")]


def _verb_entries(stem: str) -> list[Entry]:
    plain = [] if _RARE_IN_VERBS & set(stem) else [_entry(stem, _PLAIN_KINDS, _PLAIN_VERB, "affixes")]
    return [*plain, *_filled(stem, templates.of_verbs(), _UNLISTED_VERB, "template")]


def _filled(stem: str, known: Mapping[str, tuple[templates.Template, ...]], cost: float, source: str) -> list[Entry]:
    """Return the templates of a stem's skeleton with its consonants."""
    filled = [(template, templates.fill(template.codes, stem)) for template in known.get(templates.skeleton(stem), ())]
    return [
        _entry(codes, template.kinds, cost + template.cost, source, template.codes)
        for template, codes in filled
        if codes and bare(codes) == stem
    ]


def _entry(codes: str, kinds: int, cost: float, source: str, word: str = "") -> Entry:
    return Entry(codes, kinds, cost, source, word)
