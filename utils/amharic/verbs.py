"""Amharic verbs: from one marked citation form and its class to the stems of every tense.

A stem is what stands between the prefix of the person and the ending, in codes (see alphabet.py): its consonants, its
vowels, the ɨ that the pattern has, and `:` after each long consonant. What they are depends on the class and the tense,
and only `data/verb_patterns.tsv` says so. A verb with one radical less than its pattern is weak: the last radical has
been lost and a vowel takes its place (ሰማː).

Classes: A ሰበːረ, B ፈለːገ (geminate throughout), C ባረːከ (a after the first radical), Q መሰከːረ (four radicals), F ሰባበːረ (a
before the geminate), FQ ተበረታታː (the same of five), O ቆየː, M ቆመ ሳመ ሄደ (lost middle radical), R ተቋቋመ (M doubled), VA አለːፈ
and VB አሰːበ (begin with a vowel), V as VB, but behind the consonant of a prefix.

Voices, joined to the class as in A-t: t passive-reflexive ተ-, T the same when ተ- took the place of the first radical
(ታየː C-T), a and as causative አ- and አስ-, at causative with a geminate first radical, ast አስተ-, tn and an five radicals
whose first, mostly ን, has no vowel (ተንቀሳቀːሰ F-tn, አስማːማ C-an).
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from utils.amharic.alphabet import CONSONANT_CODES, VOWELS
from utils.amharic.alphabet import read as encode_letters
from utils.amharic.kinds import mask
from utils.amharic.tables import DATA, TableError, numbered_rows, rows

TABLE = "lexicon/verbs.tsv"
PERFECTIVE, IMPERFECTIVE, JUSSIVE, GERUND, INFINITIVE, AGENT, IMPERATIVE = range(7)
_FINITE = ((IMPERFECTIVE, "I"), (JUSSIVE, "J"), (IMPERATIVE, "M"))
# The tenses in which a person or መ- stands before the stem, so that the ተ- of the passive melts into its first radical.
_PREFIXED = {IMPERFECTIVE, JUSSIVE, INFINITIVE}
_PASSIVE = {"t", "T", "tn"}
# How rare a verb is beside others: a derived voice is rarer than the verb itself or, marked `+`, likelier.
_RARE = 1.0
_DERIVED = 0.5
_FREQUENT = -0.5
_PALATALS = dict(zip("dtTszSnl", "JcCXZCNy", strict=True))
_PALATAL = frozenset(_PALATALS.values())
_NEVER_LONG = "hH"
_LABIAL_VOWELS = {"E": "o", "": "u", "I": "u", "a": "Wa"}

_TO_CODES = str.maketrans(VOWELS | {"ː": ":"})
_PART = re.compile("([1-5])(:?)([EuiaeIo]?)")
_LETTER = re.compile(f"([{CONSONANT_CODES}1-5])(:?)(W?)([EuiaeIo]?)")


class Stem(NamedTuple):
    """One stem of a verb: what is said, the kinds of affix that it takes, and how rare it is."""

    codes: str
    kinds: int
    cost: float


class Radical(NamedTuple):
    """A consonant; a labialised one colours the vowel after it (ቆ, ቁ, ቋ as forms of qʷ), and ሀ is read as ሃ."""

    code: str
    labial: bool = False
    is_open: bool = False

    @classmethod
    def of(cls, letter: re.Match[str]) -> "Radical":
        return cls(letter[1], letter[3] == "W" or letter[4] == "o", letter[1] + letter[4] == "ha")

    def spoken(self, length: str, vowel: str) -> str:
        if vowel == "W":  # the last radical
            vowel = "W" * self.labial
        elif self.is_open and vowel == "E":
            vowel = "a"
        elif self.labial:
            vowel = _LABIAL_VOWELS.get(vowel, vowel)
        return self.code + ("" if self.code in _NEVER_LONG else length) + vowel


class Root(NamedTuple):
    """A verb taken apart: radicals, class, voice, what precedes the radicals, and the last vowel if it is weak."""

    radicals: tuple[Radical, ...]
    group: str
    voice: str
    prefix: str
    weak: str = ""

    @property
    def is_passive(self) -> bool:
        return self.voice in _PASSIVE

    def pattern(self, tense: int) -> str:
        """Return the pattern of a tense in codes."""
        voice = "active" if not self.voice else "passive" if self.is_passive else "causative"
        known = _patterns()
        own = known.get((voice, f"{self.group}-{self.voice}"))
        stems = own or known.get((voice, self.group)) or known["active", self.group]
        return stems[JUSSIVE if tense == IMPERATIVE else tense]

    def before(self, tense: int) -> tuple[str, bool]:
        """Return what precedes the radicals in a tense, and whether the first of them is geminate after it."""
        if self.is_passive and tense in _PREFIXED:
            return self.prefix.removeprefix("tE"), self.voice != "tn"
        prefix = self.prefix.removeprefix("H") if tense in _PREFIXED else self.prefix
        return prefix, self.voice == "at" or (self.voice == "as" and not self.prefix.startswith("Has"))


@cache
def _patterns() -> dict[tuple[str, str], list[str]]:
    """Return the patterns of a class in the order of the tenses, by voice and class."""
    table = rows("verb_patterns.tsv", columns=8)
    return {(voice, group): [stem.translate(_TO_CODES) for stem in stems] for voice, group, *stems in table}


@cache
def roots(table: Path = DATA / TABLE) -> tuple[tuple[Root, str, float], ...]:
    """Return every verb of a table, then the derived ones: root, citation form, and how rare it is."""
    listed, derived = [], []
    for number, (citation, kind, _, voices) in numbered_rows(table, 4):
        try:
            root = read(citation, kind)
        except TableError as error:
            raise TableError(f"{table}:{number}: {error}") from error
        known = [voice for voice in voices.split(",") if voice != "-"]
        listed.append((root, citation, _RARE if "rare" in known else 0.0))
        for voice in known:
            if voice != "rare":
                cost = _FREQUENT if voice.endswith("+") else _DERIVED
                derived.append((_derived(root, voice.rstrip("+")), citation, cost))
    return (*listed, *derived)


# Long because what is taken off a word, from its prefix on, tells how the rest is read.
def read(citation: str, kind: str) -> Root:
    """Take a marked citation form apart; one that its class does not make is refused."""
    group, _, voice = kind.partition("-")
    word = encode_letters(citation)
    letters = list(_LETTER.finditer(word))
    prefix = _prefix(voice, word, letters[1][0], citation)
    letters = letters[len(_LETTER.findall(prefix)) :]
    vowel = letters[0][4]
    group = {"M": f"M{vowel if vowel in {'a', 'e'} else 'ə'}", "VB": "V"}.get(group, group)
    if ("active", group) not in _patterns():
        raise TableError(f"{citation}: no such class: {kind}; the docstring of verbs.py lists them")
    root = Root(tuple(map(Radical.of, letters)), group, voice, prefix)
    missing = int(root.pattern(PERFECTIVE)[-1]) - len(letters)
    if missing == 1:
        root = root._replace(weak=letters[-1][4])
    made = _stem(root, PERFECTIVE) + (root.weak or "E") if missing in {0, 1} else "nothing: count its radicals"
    if made != word:
        raise TableError(f"{citation}: class {kind} makes {made}, not {word}; correct the marks or the class")
    return root


def _prefix(voice: str, word: str, second: str, citation: str) -> str:
    """Return what precedes the radicals of a word with this second letter."""
    prefixes = {
        "": "", "T": "", "t": "tE", "a": "Ha", "at": "Ha",
        "as": "Has" if re.match("Has(?!:)", word) else "Ha",  # አስ- is not written out before ስ: አሰማ
        "ast": "HastE", "tn": "tE" + second, "an": "Ha" + second,
    }  # fmt: skip
    if voice not in prefixes:
        raise TableError(f"{citation}: no such stem: {voice}; use one of {', '.join(filter(None, prefixes))}")
    return prefixes[voice]


def _derived(root: Root, voice: str) -> Root:
    if root.group in {"VA", "V"}:  # the consonant of the prefix takes the place of the first radical
        code, prefix, voice = {"t": ("t", "", "T"), "as": ("s", "Ha", "a")}[voice]
        group = "C" if (root.group, voice) == ("VA", "T") else "V"
        return root._replace(radicals=(Radical(code), *root.radicals[1:]), group=group, voice=voice, prefix=prefix)
    prefix = {"t": "tE", "a": "Ha", "as": "Ha" if root.radicals[0].code == "s" else "Has"}[voice]
    return root._replace(voice=voice, prefix=prefix)


def stems(root: Root) -> Iterator[Stem]:
    """Yield the stems of all tenses; costs say which is the rarer of two that are written alike."""
    yield from _finite(root)
    whole = root._replace(radicals=(*root.radicals, Radical("t")), weak="") if root.weak else root
    yield from _gerunds(_stem(whole, GERUND))
    if root.group == "Mə" and root.radicals[0].labial:  # ቁሞ beside ቆሞ
        yield from (stem._replace(cost=0.5) for stem in _gerunds(_filled(root, "1I2", GERUND)))
    yield from _infinitives(root)
    yield from _agents(root)
    yield from _adjectives(root)
    yield from _contracted(whole, [GERUND] if root.weak else [IMPERFECTIVE, GERUND])


def _finite(root: Root) -> Iterator[Stem]:
    """Yield the stems with a person: perfective, imperfective, jussive and imperative."""
    tenses = [(PERFECTIVE, "P" + {"a": "a", "E": "ə"}.get(root.weak, ""))]
    tenses += [(tense, kind + "a" * (root.weak == "a")) for tense, kind in _FINITE]
    for tense, kind in tenses:
        stem = "H" * (root.group == "VA" and tense == IMPERATIVE) + _stem(root, tense)
        yield Stem(stem, mask(kind), 0)
        if tense != PERFECTIVE:
            yield Stem(_softened(stem), mask(kind[0] + "p"), 0)
    if root.weak and root.radicals[-1].labial:  # before -u it is a plain consonant: አታንኳኩ
        plain = root._replace(radicals=(*root.radicals[:-1], root.radicals[-1]._replace(labial=False)))
        yield from (Stem(_stem(plain, tense), mask(kind), 0.5) for tense, kind in tenses)


def _gerunds(gerund: str) -> Iterator[Stem]:
    soft = _softened(gerund)
    yield Stem(gerund, mask("G"), 0)
    yield Stem(soft if soft[-1] in _NEVER_LONG + ":" else soft + ":", mask("Gp"), 0)


def _infinitives(root: Root) -> Iterator[Stem]:
    """Yield the infinitive and the noun of a place or tool."""
    infinitive = _stem(root, INFINITIVE)
    infinitive = ("m" if infinitive[0] == "a" else "mE") + infinitive
    yield Stem(infinitive + (root.weak and root.weak + "t"), mask("N C"), 0)
    soft = _softened(infinitive)
    is_palatal = soft.rstrip(":")[-1] in _PALATAL  # መቆያ and ማከማቻ have no -ia
    yield Stem(soft + ("a" if is_palatal else "iya"), mask("V"), 0.5)


def _agents(root: Root) -> Iterator[Stem]:
    agent = _stem(root, AGENT)
    soft = _softened(agent)
    if not root.weak and soft != agent:
        yield Stem(soft, mask("C"), 0.6)
    yield Stem(soft + "i", mask("V"), 0.4)


def _adjectives(root: Root) -> Iterator[Stem]:
    """Yield the noun of manner and the participle, of the classes that have them."""
    manner = _patterns().get(("manner", root.group))
    if manner and root.voice in {"", "t", "a"}:
        yield Stem("Ha" + _filled(root._replace(voice="", prefix=""), manner[AGENT]), mask("C"), 0.5)
    participle = _patterns().get(("participle", root.group))
    if participle and not root.voice and not root.radicals[0].code.isdigit():
        yield Stem(_filled(root, participle[AGENT]), mask("C"), 0.8)


def _contracted(root: Root, tenses: Iterable[int]) -> Iterator[Stem]:
    """Yield the forms in which equal radicals with no vowel between them are written once: ይዘላል beside ይዘልላል, መቶ."""
    last = len(root.radicals)
    if last < 3 or root.radicals[-2] != root.radicals[-1] or root.weak:
        return
    for tense in tenses:
        pattern = root.pattern(tense)
        if re.search(f"[Ea]{last - 1}{last}$", pattern):
            short = _filled(root, f"{pattern[:-2]}{last}:", tense)
            if tense == GERUND:
                yield from (stem._replace(cost=0.5) for stem in _gerunds(short))
            else:
                yield from (Stem(short, mask("I"), 0.5), Stem(_softened(short), mask("Ip"), 0.5))


def _stem(root: Root, tense: int) -> str:
    return _filled(root, root.pattern(tense), tense)


def _filled(root: Root, pattern: str, tense: int = AGENT) -> str:
    """Put the radicals into a pattern, up to the one that a weak verb lacks, and the prefix of the voice before it."""
    prefix, geminate = root.before(tense)
    last = len(root.radicals)
    parts = [root.radicals[int(number) - 1].spoken(length, vowel) for number, length, vowel in _kept(pattern, last)]
    if tense in _PREFIXED and root.group in {"VA", "V"} and parts[0][0] == "H":
        parts[0] = parts[0][1:]  # the glottal stop melts into the prefix: ይ + አልፍ = ያልፍ
    if geminate and parts[0][0] not in _NEVER_LONG:
        parts[0] = parts[0][0] + ":" + parts[0][1:].lstrip(":")
    return prefix + "".join(parts)


def _kept(pattern: str, last: int) -> list[tuple[str, str, str]]:
    kept = [part for part in _PART.findall(pattern) if int(part[0]) <= last]
    kept[-1] = (kept[-1][0], kept[-1][1], "W")  # the vowel of the ending follows
    return kept


def _softened(stem: str) -> str:
    """Make the last consonant of a stem palatal."""
    bare = stem.rstrip(":")
    return bare[:-1] + _PALATALS.get(bare[-1], bare[-1]) + stem[len(bare) :]
