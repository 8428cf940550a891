"""Amharic verbs: from one marked citation form and its class to the marked forms of the whole paradigm.

A form is ordinary fidel with `ː` after every letter whose consonant is geminate. Which consonant that is depends on the
class and on the tense, and only `data/verb_patterns.tsv` says so. A verb with one radical less than its pattern is
weak: the last radical has been lost and the one before it takes the endings (ሰማː after 1ə2əː3).

Classes: A ሰበːረ, B ፈለːገ (geminate throughout), C ባረːከ (a after the first radical), Q መሰከːረ (four radicals), F ሰባበːረ (a
before the geminate), M ቆመ ሳመ ሄደ (lost middle radical), R ተቋቋመ (M doubled), VA አለːፈ and VB አሰːበ (begin with a vowel),
V as VB, but behind the consonant of a prefix.

Stems, joined to the class as in A-t: t passive-reflexive ተ-, T the same when ተ- took the place of the first radical
(ታየː C-T), a and as causative አ- and አስ-, at causative with a geminate first radical, ast አስተ-, tn and an five radicals
whose first, mostly ን, has no vowel (ተንቀሳቀːሰ F-tn, አስማːማ C-an).
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from utils.amharic.tables import DATA, TableError, numbered_rows, rows

TABLE = "lexicon/verbs.tsv"

# The noun of manner: አነጋገር annäɡaɡär "way of speaking".
_MANNER = {"A": "1əː2a2ə3", "B": "1əː2a2ə3", "Q": "1əː2ə3a3ə4", "Mə": "1aː1a2"}

# The letters that the last radical of a stem may show, as places in its list: the orders 0-6, the eighth column, then
# those that depend on the verb: in the perfective's three persons (ሰበረ ሰበርኩ ሰበርክ) and its others, without an ending,
# palatalised.
_PLACES = "ə u i_order a e ɨ o wa third first second other bare i palatal iya long_e".split()
_E, _U, _A, _LONG, _SIXTH, _O, _WA, _I, _PALATAL, _IYA = map(_PLACES.index, "ə u a e ɨ o wa i palatal iya".split())

Endings = tuple[tuple[str, int, str], ...]  # a prefix, the place of the last radical's letter, and what follows it

_VOWELS = {vowel: order for order, vowel in enumerate("əuiaeɨo")}
_PERFECTIVE, _IMPERFECTIVE, _JUSSIVE, _GERUND, _INFINITIVE, _AGENT, _IMPERATIVE = range(7)
# The tenses in which a person or መ- stands before the stem, so that the ተ- of the passive melts into its first radical.
_PREFIXED = {_IMPERFECTIVE, _JUSSIVE, _INFINITIVE}

_PALATALS = dict(zip("ደተጠሰዘነለጸጀቸጨሸዠኘየ", "ጀቸጨሸዠኘየጨጀቸጨሸዠኘየ", strict=True))
_LABIAL_ROWS = {"ቈ": "ቀ", "ኈ": "ሀ", "ኰ": "ከ", "ጐ": "ገ"}
_LABIAL_A = {"ቀ": "ቋ", "ሀ": "ኋ", "ከ": "ኳ", "ገ": "ጓ"}
_LABIAL_ORDERS = {_E: _O, _SIXTH: _U, _A: _WA}  # after a labialised consonant ə is heard as o, ɨ as u
_NEVER_LONG = "ሀኸአ"

_PART = re.compile("([1-4])([əuiaeɨo]?)(ː?)")


@cache
def _patterns() -> dict[tuple[str, str], list[str]]:
    """Return the stems of a verb in the order of the tenses, by voice and class."""
    return {(voice, group): stems for voice, group, *stems in rows("verb_patterns.tsv", columns=8)}


@cache
def _endings(tense: str, *, you: bool) -> Endings:
    """Return the endings of the first and third persons of a tense, and with ``you`` those of the second ones."""
    persons = ("others", "you") if you else ("others",)
    return tuple(
        (prefix.strip("∅"), _PLACES.index(place), rest.strip("∅"))
        for each, person, prefix, place, rest in rows("verb_endings.tsv", columns=5)
        if each == tense and person in persons
    )


class Radical(NamedTuple):
    """A consonant: the first letter of its row, and whether it is labialised (ቆ, ቁ, ቋ as forms of qʷ)."""

    row: str
    labial: bool = False

    def letter(self, order: int, mark: str = "") -> str:
        """Return the letter for a vowel order, with a gemination mark where the consonant can bear one."""
        if self.labial:
            order = _LABIAL_ORDERS.get(order, order)
        if self.row == "አ" and order == _A:
            return "አ"
        letter = _LABIAL_A.get(self.row, "") if order == _WA else ""
        return (letter or chr(ord(self.row) + order)) + ("" if self.row in _NEVER_LONG else mark)


class Root(NamedTuple):
    """A verb taken apart: radicals, class, stem, what precedes them, and the last vowel if it is weak."""

    radicals: tuple[Radical, ...]
    group: str
    stem: str
    prefix: str
    weak: int | None = None

    def pattern(self, tense: int) -> str:
        voice = "active" if not self.stem else "passive" if self.stem in {"t", "T", "tn"} else "causative"
        group = "A-a" if (self.group, self.stem) == ("A", "a") else self.group
        stems = _patterns().get((voice, group)) or _patterns()["active", group]
        return stems[_JUSSIVE if tense == _IMPERATIVE else tense]

    def before(self, tense: int) -> tuple[str, bool]:
        """Return the prefix of a tense and whether the first radical is geminate after it."""
        assimilated = self.stem == "at" or (self.stem == "as" and self.prefix == "አ")
        if self.stem in {"t", "T", "tn"} and tense in _PREFIXED:
            return self.prefix.removeprefix("ተ"), self.stem != "tn"
        if self.group == "VA" and tense == _IMPERATIVE:
            return "እ", False
        return self.prefix, assimilated


class Stem(NamedTuple):
    """One tense of a verb: everything before the last radical, and the letters that this radical may show."""

    head: str
    letters: tuple[str, ...]

    def forms(self, endings: Endings) -> list[str]:
        """Return the stem with each person's prefix and ending; an initial አ melts into the prefix: ይ + አልፍ = ያልፍ."""
        head, letters = self
        if head.startswith("አ"):
            head, endings = head[1:], _melted(endings)
        return [f"{prefix}{head}{letters[place]}{rest}" for prefix, place, rest in endings]


@cache
def all_forms(table: Path = DATA / TABLE) -> dict[str, str]:
    """Return every form of every verb: as it is written, without marks → with marks.

    Two forms may be written alike (ይማር: yəmmar "he learns", yəmar "let him pardon"). The first one found is kept: first
    the listed verbs in the order of the table, then the stems derived from them; jussives and contracted forms last.
    """
    listed, derived = [], []
    for number, (citation, kind, _, stems) in numbered_rows(table, 4):
        try:
            root = read(citation, kind)
        except TableError as error:
            raise TableError(f"{table}:{number}: {error}") from error
        listed.append(root)
        derived += [_derived(root, stem) for stem in stems.split(",") if stem != "-"]
    forms: list[str] = []
    for step in _STEPS:
        for root in listed:
            forms.extend(step(root, you=True))
        for root in derived:
            forms.extend(step(root, you=False))
    # Read backwards, so that the first of two forms with one spelling is written last and stays.
    forms.reverse()
    return dict(zip("\n".join(forms).replace("ː", "").split("\n"), forms, strict=True))


def read(citation: str, kind: str) -> Root:
    """Take a marked citation form apart; one that its class does not make is refused."""
    group, _, stem = kind.partition("-")
    word = citation.replace("ː", "")
    known = {"": "", "T": "", "t": "ተ", "a": "አ", "at": "አ", "as": "አስ", "ast": "አስተ", "tn": word[:2], "an": word[:2]}
    if stem not in known:
        raise TableError(f"{word}: no such stem: {stem}; use one of {', '.join(filter(None, known))}")
    # አስ- is not written out before ስ: አሰማ.
    prefix = "አ" if stem == "as" and not word.startswith("አስ") else known[stem]
    letters = [_taken_apart(letter) for letter in word[len(prefix) :]]
    if group == "M":
        group += {_A: "a", _LONG: "e"}.get(letters[0][1], "ə")
    group = "V" if group == "VB" else group
    root = Root(tuple(radical for radical, _ in letters), group, stem, prefix)
    if ("active", group) not in _patterns():
        raise TableError(f"{citation}: no such class: {kind}; the docstring of verbs.py lists them")
    missing = int(root.pattern(_PERFECTIVE)[-1]) - len(letters)
    if missing == 1:
        root = root._replace(weak=letters[-1][1])
    third_person = _endings("perfective", you=False)[:1]
    made = _stem(root, _PERFECTIVE).forms(third_person)[0] if missing in {0, 1} else "nothing: count its radicals"
    if made != citation:
        raise TableError(f"{citation}: class {kind} makes {made}; correct the marks or the class")
    return root


def _taken_apart(letter: str) -> tuple[Radical, int]:
    row, order = chr(ord(letter) & ~7), ord(letter) & 7
    if row in _LABIAL_ROWS:
        return Radical(_LABIAL_ROWS[row], labial=True), order
    if order in {_O, _WA}:
        return Radical(row, labial=True), _E if order == _O else _A
    return Radical(row), order


def _derived(root: Root, stem: str) -> Root:
    if root.group in {"VA", "V"}:  # the consonant of the prefix takes the place of the first radical
        row, prefix, stem = {"t": ("ተ", "", "T"), "as": ("ሰ", "አ", "a")}[stem]
        group = "C" if (root.group, stem) == ("VA", "T") else "V"
        return root._replace(radicals=(Radical(row), *root.radicals[1:]), group=group, stem=stem, prefix=prefix)
    prefix = {"t": "ተ", "a": "አ", "as": "አ" if root.radicals[0].row == "ሰ" else "አስ"}[stem]
    return root._replace(stem=stem, prefix=prefix)


def _indicative(root: Root, *, you: bool) -> Iterator[str]:
    yield from _stem(root, _PERFECTIVE).forms(_endings("perfective", you=you))
    yield from _stem(root, _IMPERFECTIVE).forms(_endings("imperfective", you=you))
    gerund = _stem(root, _GERUND)
    if root.weak is not None:  # ት stands for the lost radical: ሰምቶ
        gerund = Stem(gerund.head + gerund.letters[_SIXTH], _letters(Radical("ተ"), "", None))
    yield from gerund.forms(_endings("gerund", you=you))
    # The infinitive, the nouns of instrument and agent and, of a plain stem, the noun of manner.
    ending = ("መ", _SIXTH, "") if root.weak is None else ("መ", root.weak, "ት")
    yield from _stem(root, _INFINITIVE).forms((ending, ("መ", _IYA, "")))
    yield from _stem(root, _AGENT).forms((("", _PALATAL if root.weak is None else _I, ""),))
    if not root.stem and root.group in _MANNER:
        yield from _stem(root, _AGENT, _MANNER[root.group]).forms((("አ", _SIXTH, ""),))


def _jussive(root: Root, *, you: bool) -> Iterator[str]:
    yield from _stem(root, _JUSSIVE).forms(_endings("jussive", you=you))
    if you:
        yield from _stem(root, _IMPERATIVE).forms(_endings("imperative", you=True))


def _contracted(root: Root, *, you: bool) -> Iterator[str]:
    """Yield the forms in which equal radicals with no vowel between them are written once: ይዘላል beside ይዘልላል."""
    if len(root.radicals) != 3 or root.radicals[1] != root.radicals[2]:
        return
    for name, tense in (("imperfective", _IMPERFECTIVE), ("gerund", _GERUND)):
        pattern = root.pattern(tense)
        if pattern.endswith(("ə2ɨ3", "a2ɨ3")):
            yield from _stem(root, tense, pattern[:-3] + "3ː").forms(_endings(name, you=you))


_STEPS = (_indicative, _jussive, _contracted)  # the likelier forms first


def _stem(root: Root, tense: int, pattern: str = "") -> Stem:
    prefix, geminate = root.before(tense)
    radicals = root.radicals
    *parts, (last, _, mark) = [part for part in _parts(pattern or root.pattern(tense)) if part[0] < len(radicals)]
    head = [radicals[number].letter(order, mark) for number, order, mark in parts]
    if geminate and radicals[0].row not in _NEVER_LONG:
        head[0] += "ː"
    return Stem(prefix + "".join(head), _letters(radicals[last], mark, root.weak))


@cache
def _parts(pattern: str) -> tuple[tuple[int, int, str], ...]:
    return tuple((int(digit) - 1, _VOWELS.get(vowel, _SIXTH), mark) for digit, vowel, mark in _PART.findall(pattern))


@cache
def _letters(radical: Radical, mark: str, weak: int | None) -> tuple[str, ...]:
    orders = [radical.letter(order, mark) for order in range(8)]
    third, other, bare = (_E, _SIXTH, _SIXTH) if weak is None else (weak, weak, _A if weak == _A else _SIXTH)
    soft = Radical(_PALATALS.get(radical.row, radical.row), radical.labial and radical.row not in _PALATALS)
    i = soft.letter(2, mark)
    palatal = radical.row in _PALATALS
    return (
        *orders,
        *(orders[third], orders[other] + ("ኩ" if weak is None else "ሁ")),
        *(orders[other] + ("ክ" if weak is None else "ህ"), orders[other], orders[bare], i),
        soft.letter(_SIXTH, mark) if palatal else i,
        soft.letter(_A, mark) if palatal else i + "ያ",
        soft.letter(_LONG, "ː"),
    )


@cache
def _melted(endings: Endings) -> Endings:
    melted = []
    for prefix, place, rest in endings:
        bare = prefix.removesuffix("ː")
        with_a = bare[:-1] + _taken_apart(bare[-1])[0].letter(_A) + prefix[len(bare) :] if prefix else "አ"
        melted.append((with_a, place, rest))
    return tuple(melted)
