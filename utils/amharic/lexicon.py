"""Every stem that the analyser knows: the word lists, the verbs, and a project's own pronunciations."""

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from utils.amharic import verbs
from utils.amharic.alphabet import VOWEL_CODES, WORD, PronunciationError, encode, encode_loosely, read
from utils.amharic.kinds import mask
from utils.amharic.tables import DATA, TableError, numbered_cells, rows

FOLDER = DATA / "lexicon"
# Parts of speech that take few affixes, and how much likelier than a noun (0) a word of a part of speech is.
_CLOSED = frozenset({"pron", "prep", "conj", "part", "interj", "adv"})
_COSTS = {"pron": -0.5, "prep": -0.5, "conj": -0.5, "part": -0.5, "num": -0.5, "name": 0.75, "rare": 2.0}
_VERB = 0.5
_BEFORE_N = re.compile("(?<=[ptkbdgTKPSfszXJcCw])(?=n$)")  # ɨ is heard with suffixes too: ቡድኑ budɨnu


class Entry(NamedTuple):
    """A stem as it is said: codes with `:` after long consonants, or after `=` the complete pronunciation, ɨ included.

    `kinds` are the affixes that it takes, `cost` says how rare it is beside another that is written alike; `source` and
    `word` are the list and the word of the list, for the explanation, `pos` the part of speech, for the context.
    """

    codes: str
    kinds: int
    cost: float
    source: str
    word: str
    pos: str = ""


Listed = dict[str, tuple[Entry, ...]]  # stems by their codes without length and ɨ
Stems = Mapping[str, tuple[Entry, ...]]


@cache
def stems() -> Listed:
    """Return every listed stem by its codes without length and ɨ, so homophones meet in one key."""
    known: Listed = {}
    for path in sorted(FOLDER.glob("*.tsv")):
        if path.name != Path(verbs.TABLE).name:
            for key, entry in read_list(path):
                _add(known, key, entry)
    for root, citation, rarity in verbs.roots():
        # A verb that is listed with ተ- is a verb of its own: ተማረ "learn"; ተካ has a passive.
        is_own = citation[0] == "ተ" and read(citation).startswith(root.prefix + root.radicals[0].code)
        pos = "passive" if root.is_passive and not is_own else "active"
        for codes, kinds, cost in verbs.stems(root):
            _add(known, bare(codes), Entry(codes, kinds, cost + rarity + _VERB, "verbs", citation, pos))
    for names, phones, extra, word in rows("verb_stems.tsv", columns=4):
        codes = encode(phones)
        _add(known, bare(codes), Entry(codes, mask(names), float(extra) + _VERB, "verbs", word, "active"))
    return known


def bare(codes: str) -> str:
    """Return codes as they are written: without length and ɨ."""
    return codes.replace(":", "").replace("I", "")


def with_overrides(overrides: Mapping[str, str] | None) -> Stems:
    """Return the stems with a project's own pronunciations instead of the listed ones; they take affixes too."""
    return _merged(frozenset(overrides.items())) if overrides else stems()


@lru_cache(maxsize=4)
def _merged(overrides: frozenset[tuple[str, str]]) -> Listed:
    merged = stems().copy()
    for written, spoken in overrides:
        if not WORD.fullmatch(written):
            raise PronunciationError(f"override {written!r}: the written form must be one Amharic word")
        own = dict(_with_contexts(read(written).replace(":", ""), spoken_codes(spoken), "n", "override", written))
        merged |= {key: (entry._replace(cost=-20), *merged.get(key, ())) for key, entry in own.items()}
    return merged


def spoken_codes(spoken: str) -> str:
    """Read a pronunciation: Ethiopic letters with ː after geminates, or phones."""
    if WORD.fullmatch(spoken):
        return read(spoken)
    codes = encode_loosely(spoken)
    # The glottal stop before a first vowel is not written in phones, but it is heard after a prefix.
    return "=H" + codes if codes[:1] in VOWEL_CODES else "=" + codes


def read_list(path: Path) -> Iterator[tuple[str, Entry]]:
    """Read one word list; a word that may lose its last vowel before a suffix is there once more without it."""
    for number, cells in numbered_cells(path):
        if not 3 <= len(cells) <= 4 or not WORD.fullmatch(cells[0]):
            expected = "an Amharic word, its kind, its meaning and perhaps its phones, between tabs"
            raise TableError(f"{path}:{number}: expected {expected}; found {cells!r}")
        try:
            codes = spoken_codes(cells[3]) if len(cells) == 4 else read(cells[0])
        except PronunciationError as error:
            raise TableError(f"{path}:{number}: {error}") from error
        yield from _with_contexts(read(cells[0]).replace(":", ""), codes, cells[1], path.stem, cells[0])


def _with_contexts(key: str, codes: str, kind: str, source: str, word: str) -> Iterator[tuple[str, Entry]]:
    is_of_sound = kind == "adv" and codes.endswith(":")  # it takes no suffixes: ቆምː before አለ
    cost = _COSTS.get(kind, 0.75 * is_of_sound)
    codes = _BEFORE_N.sub("I", codes)
    last = key[-1]
    yield key, Entry(codes, mask("V" if last in VOWEL_CODES else "C"), cost, source, word, kind)
    if last in {"a", "e"} and codes[-1] == last and kind not in _CLOSED and len(key) > 3:
        yield key[:-1], Entry(codes[:-1], mask("-" + last), cost, source, word, kind)


def _add(known: Listed, key: str, entry: Entry) -> None:
    others = known.get(key, ())
    if not any(other[:2] == entry[:2] and other.cost <= entry.cost for other in others):
        known[key] = (*others, entry)
