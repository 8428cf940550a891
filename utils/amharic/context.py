"""Which reading of a word is meant: the likeliest one, unless its neighbours in the sentence speak for another."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from utils.amharic.alphabet import CONSONANT_CODES, read
from utils.amharic.analysis import Reading, readings
from utils.amharic.kinds import NOUN, mask
from utils.amharic.lexicon import Stems, bare
from utils.amharic.tables import rows

_LETTER = re.compile(f"([{CONSONANT_CODES}])(:?)")
_SENTENCE_END = re.compile(r"[.?!:;\n]")
_ONE_SAYING = "አለ say"
_BARE_IMPERFECTIVE = {"nEbEr", "nEbErE", "nEbEru", "nEbErku", "nEbErn", "nEbErec", "zEnd", "jEmEr", "ynoral"}
_FINITE, _COMMAND, _IMPERFECTIVE = mask("P* G*"), mask("M* J*"), mask("I*")


class Choice(NamedTuple):
    """A word as it is said, with all its readings, the chosen one first, and why it was chosen."""

    codes: str
    readings: tuple[Reading, ...]
    why: str = ""


class Word(NamedTuple):
    """A word in its sentence: its readings, the written words around it, and what has been chosen before it."""

    readings: list[Reading]
    words: Sequence[str]
    place: int
    is_last: bool
    before: Reading | None

    def neighbour(self, distance: int) -> str:
        """Return the code word so many places further on in the sentence, or nothing."""
        place = self.place + distance
        return self.words[place] if 0 <= place < len(self.words) else ""


def read_words(words: Sequence[str], stems: Stems, gaps: Sequence[str] = ()) -> list[Choice]:
    """Read the code words of a text in their order; the gaps are what stands after each."""
    choices: list[Choice] = []
    for start, end in _sentences(len(words), gaps):
        sentence = [word.replace(":", "") for word in words[start:end]]
        before = None
        for place, word in enumerate(words[start:end]):
            choice = _read(word, sentence, place, before, stems)
            before = choice.readings[0]
            choices.append(choice)
    return choices


def _sentences(count: int, gaps: Sequence[str]) -> Iterator[tuple[int, int]]:
    start = 0
    for place, gap in enumerate(gaps[: count - 1], start=1):
        if _SENTENCE_END.search(gap):
            yield start, place
            start = place
    yield start, count


def _read(word: str, sentence: Sequence[str], place: int, before: Reading | None, stems: Stems) -> Choice:
    plain = sentence[place].replace("WE", "o")  # ጐበኘ is another spelling of ጎበኘ
    found, why = readings(plain, stems), ""
    if len(found) > 1:
        found, why = _chosen(Word(found, sentence, place, place == len(sentence) - 1, before))
    codes = found[0].codes
    if plain == word:
        return Choice(codes, tuple(found), why)
    codes = _with_lengths(word.replace(":", ""), codes) if "WE" in word else codes
    return Choice(_with_lengths(codes, word), tuple(found), "mark in the text" if ":" in word else why)


def _with_lengths(codes: str, marked: str) -> str:
    """Make those consonants geminate that are so in another marking of the same word."""
    lengths = iter([length for _, length in _LETTER.findall(marked)])
    return _LETTER.sub(lambda match: match[1] + (next(lengths, "") or match[2]), codes)


def _chosen(word: Word) -> tuple[list[Reading], str]:
    """Order the readings of a word by their weights in the sentence, and say which rule changed the order."""
    weights = [reading.cost for reading in word.readings]
    reasons = [""] * len(weights)
    for name, rule in _RULES.items():
        for number, reading in enumerate(word.readings):
            if bonus := rule(word, reading):
                weights[number] -= bonus
                reasons[number] = name
    order = sorted(range(len(weights)), key=weights.__getitem__)
    why = "" if order[0] == 0 else reasons[order[0]]
    return [word.readings[number] for number in order], why


def _phrase(word: Word, reading: Reading) -> float:
    """Return 6 for a reading that a fixed phrase asks for."""
    for codes, side, neighbours in _phrases().get(word.words[word.place], ()):
        if reading.codes == codes:
            places = (-1, 1) if side == "near" else (-1,) if side == "after" else (1,)
            if any(word.neighbour(distance) in neighbours for distance in places):
                return 6
    return 0


@cache
def _phrases() -> dict[str, list[tuple[str, str, frozenset[str]]]]:
    phrases: dict[str, list[tuple[str, str, frozenset[str]]]] = {}
    for marked, side, neighbours, _ in rows("phrases.tsv", columns=4):
        codes = read(marked)
        known = frozenset(bare(read(neighbour)) for neighbour in neighbours.split())
        phrases.setdefault(bare(codes), []).append((codes, side, known))
    return phrases


def _saying(word: Word, reading: Reading) -> float:
    """Return a bonus for አለ "said" behind what was said: a finite verb, thus, yes, no, or a word of sound."""
    if reading.entry.word != _ONE_SAYING or not word.before:
        return 0
    before = word.before
    finite = before.kinds & ~NOUN and (before.kinds & _COMMAND or _is_finite(before))
    return 4 if finite or before.entry.source == "said" else 0


def _is_finite(reading: Reading) -> bool:
    """Return whether a reading can end a sentence."""
    if reading.entry.word in {"ነው", "ናት", "ናቸው"}:
        return True
    is_main = reading.prefix.marked in {"", "y", "t", "H", "Hn:", "Hal", "Hay", "Hat:", "Han:"}
    is_verb = bool(reading.kinds & ~NOUN)
    return is_verb and is_main and (bool(reading.kinds & mask("P* M* J*")) or "al" in reading.ending.marked)


def _last(word: Word, reading: Reading) -> float:
    """Return a bonus for a finite verb at the end of a sentence, where Amharic has it."""
    return 1.5 if word.is_last and word.place and _is_finite(reading) else 0


def _before_was(word: Word, reading: Reading) -> float:
    return 3.5 if reading.kinds & _IMPERFECTIVE and word.neighbour(1) in _BARE_IMPERFECTIVE else 0


def _command(word: Word, reading: Reading) -> float:
    """Return a bonus for a plural command in a sentence that speaks of what is yours."""
    if not reading.kinds & _COMMAND or not reading.ending.marked.startswith("u"):
        return 0
    return 3 if any("achu" in other for other in word.words) else 0


_RULES: dict[str, Callable[[Word, Reading], float]] = {
    "fixed phrase": _phrase,
    "behind what is said": _saying,
    "verb at the end": _last,
    "imperfective before ነበር": _before_was,
    "command": _command,
}
