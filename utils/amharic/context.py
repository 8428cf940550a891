"""Which reading of a word is meant: the likeliest one, unless its neighbours in the sentence speak for another."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from utils.amharic.alphabet import CONSONANT_CODES, read
from utils.amharic.analysis import Reading, readings
from utils.amharic.kinds import NOUN, VERB, mask
from utils.amharic.lexicon import Stems, bare
from utils.amharic.tables import rows

_LETTER = re.compile(f"([{CONSONANT_CODES}])(:?)")
_SENTENCE_END = re.compile(r"[.?!:;\n]")
_LONGEST_SENTENCE = 60  # words; a text without marks takes linear time too
_SAY, _THUS = "አለ say", ("እንዲህ", "እንዲያ")
_BARE_IMPERFECTIVE = frozenset({"nEbEr", "nEbErE", "nEbEru", "nEbErku", "nEbErn", "nEbErec", "zEnd", "jEmEr"})
_ADDRESS = frozenset({"hoy", "Hbakh", "HbakX", "Hbakacuu", "Hbakachu", "Hnant", "HnantE", "HantE", "Hanci", "lJoc"})
_MAIN = frozenset({"", "y", "t", "H", "Hn:", "Hal", "Hay", "Hat:", "Han:"})
_PERFECTIVE, _COMMAND, _IMPERFECTIVE, _INFINITIVE = mask("P*"), mask("M* J*"), mask("I*"), mask("N")
_THIRD = mask("Iy* Jy* P* G*")
_RELATIVE = ("yEm:", "m")
_PLACES = frozenset(read("ላይ ውስጥ ጋር አጠገብ ስር ፊት እዚህ እዚያ ዘንድ መካከል").split())
_ANIMATE = frozenset({"person", "animal"})


class Choice(NamedTuple):
    """A word as it is said, with all its readings, the chosen one first, and why it was chosen."""

    codes: str
    readings: tuple[Reading, ...]
    why: str = ""


class Place(NamedTuple):
    """A word in its sentence: the code words of the sentence, what has been chosen before, and the marks around it."""

    words: Sequence[str]
    chosen: Sequence[Reading]
    before: str
    after: str
    end: str  # the mark that ends the sentence
    stems: Stems

    @property
    def last(self) -> Reading | None:
        """Return the reading of the word before."""
        return self.chosen[-1] if self.chosen else None

    @property
    def is_last(self) -> bool:
        return len(self.chosen) == len(self.words) - 1

    def neighbour(self, distance: int) -> str:
        """Return the code word so many places further on in the sentence, or nothing."""
        place = len(self.chosen) + distance
        return self.words[place] if 0 <= place < len(self.words) else ""


def read_words(words: Sequence[str], stems: Stems, gaps: Sequence[str] = ("",)) -> list[Choice]:
    """Read the code words of a text in their order; the gaps are what stands before the first and after each."""
    choices: list[Choice] = []
    gaps = (*gaps, *[""] * (len(words) + 1 - len(gaps)))
    for start, end in _sentences(gaps):
        sentence = [word.replace(":", "") for word in words[start:end]]
        chosen: list[Reading] = []
        for place in range(start, end):
            here = Place(sentence, chosen, gaps[place], gaps[place + 1], gaps[end], stems)
            choices.append(_read(words[place], here))
            chosen.append(choices[-1].readings[0])
    return choices


def _sentences(gaps: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the first word of each sentence and the one behind its last; a quotation does not end the sentence."""
    start, count = 0, len(gaps) - 1
    for place in range(1, count):
        is_end = _SENTENCE_END.search(gaps[place]) and '"' not in gaps[place]
        if is_end or place - start == _LONGEST_SENTENCE:
            yield start, place
            start = place
    if count:
        yield start, count


def _read(word: str, place: Place) -> Choice:
    plain = place.neighbour(0).replace("WE", "o")  # ጐበኘ is another spelling of ጎበኘ
    found, why = readings(plain, place.stems), ""
    if len(found) > 1:
        found, why = _ordered(found, place)
    codes = found[0].codes
    if plain == word:
        return Choice(codes, tuple(found), why)
    codes = _with_lengths(word.replace(":", ""), codes) if "WE" in word else codes
    return Choice(_with_lengths(codes, word), tuple(found), "mark in the text" if ":" in word else why)


def _with_lengths(codes: str, marked: str) -> str:
    """Make those consonants geminate that are so in another marking of the same word."""
    lengths = iter([length for _, length in _LETTER.findall(marked)])
    return _LETTER.sub(lambda match: match[1] + (next(lengths, "") or match[2]), codes)


def _ordered(found: list[Reading], place: Place) -> tuple[list[Reading], str]:
    """Order the readings of a word by their weights in the sentence, and say which rule changed the order."""
    bonuses = {name: [rule(reading, place, found) for reading in found] for name, rule in _RULES.items()}
    weights = [reading.cost - sum(all_bonuses) for reading, *all_bonuses in zip(found, *bonuses.values(), strict=True)]
    order = sorted(range(len(weights)), key=weights.__getitem__)
    best = order[0]
    why = max(bonuses, key=lambda name: bonuses[name][best] - bonuses[name][0]) if best else ""
    return [found[number] for number in order], why


def _phrase(reading: Reading, place: Place, _: list[Reading]) -> float:
    """Return a bonus for a reading that a fixed phrase asks for."""
    for codes, side, neighbours in _phrases().get(place.neighbour(0), ()):
        around = {"after": [place.neighbour(-1)], "before": [place.neighbour(1)]}.get(side, place.words)
        if reading.codes.replace("I", "") == codes and not neighbours.isdisjoint(around):
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


def _saying(reading: Reading, place: Place, _: list[Reading]) -> float:
    """Return a bonus for አለ "said" behind what was said: a quotation, a finite verb, yes, no, a word of sound."""
    last = place.last
    if reading.entry.word != _SAY:
        return 0
    if reading.codes == "yalE":  # ያለ ምክንያት without, unless a place says where something is
        is_place = last and (last.prefix.marked == "bE" or place.neighbour(-1) in _PLACES)
        return 2.5 * (not is_place)
    if '"' in place.before:
        return 6
    return _said_by(reading, last) if last else 0


def _said_by(reading: Reading, last: Reading) -> float:
    is_speaker = _is_animate(last) and (last.ending.marked or last.entry.pos == "name")
    if last.entry.word in _THUS or (reading.prefix.marked and is_speaker):  # አባትህ ያለው, ጳውሎስ እንዳለ
        return 3
    is_word_of_sound = last.entry.pos == "interj" or (last.entry.pos == "adv" and last.codes.endswith(":"))
    return 5 if is_word_of_sound or _is_finite(last) else 0


def _is_finite(reading: Reading) -> bool:
    """Return whether a reading can end a sentence."""
    if reading.entry.word in {"ነው", "ናት", "ናቸːው"}:
        return True
    if reading.prefix.marked not in _MAIN or not reading.kinds & ~NOUN & VERB:
        return False
    is_negative = reading.prefix.marked[:2] == "Ha" and reading.ending.marked.endswith("m")
    return bool(reading.kinds & (_PERFECTIVE | _COMMAND)) or is_negative or "al" in reading.ending.marked


def _is_main(reading: Reading) -> bool:
    """Return whether a reading surely ends a clause, so that no second finite verb follows it: ይላል ተረቱ."""
    return "al" in reading.ending.marked and _is_finite(reading)


def _last(reading: Reading, place: Place, _: list[Reading]) -> float:
    """Return a bonus for a finite verb at the end of a sentence, more behind an object, and a malus elsewhere."""
    if not _is_finite(reading):
        return 0
    if place.is_last:
        return (1.5 + 1.2 * _object(place)) if place.last and not _is_main(place.last) else 0
    if reading.ending.marked.endswith("n:a"):
        return 0
    is_inside = (
        not place.after.strip()
        and not reading.prefix.marked
        and reading.kinds & _PERFECTIVE
        and place.neighbour(1)[:2] not in {"Ha", "bl"}
    )
    return -1.2 if is_inside and place.chosen else -2.5 * bool(is_inside)


def _attribute(reading: Reading, place: Place, _: list[Reading]) -> float:
    """Return a malus for an adjective or a number before a verb: ሰው መቶ አመለጠ."""
    after = place.neighbour(1)
    if not (reading.entry.pos == "adj" or reading.entry.word == "መቶ") or not after or place.after.strip():
        return 0
    verb = readings(after, place.stems)[0]
    is_verb = verb.entry.pos in {"active", "passive"} and not verb.kinds & NOUN
    return -4.0 * (is_verb and verb.entry.word[:2] != "አለ")


def _before_was(reading: Reading, place: Place, _: list[Reading]) -> float:
    return 3.5 if reading.kinds & _IMPERFECTIVE and place.neighbour(1) in _BARE_IMPERFECTIVE else 0


def _command(reading: Reading, place: Place, _: list[Reading]) -> float:
    """Return a bonus for a command: before an exclamation mark, or to somebody who is addressed."""
    if not reading.all_kinds & mask("M*") or reading.prefix.marked:
        return 0
    if not (place.is_last or place.after.strip()):
        return 0
    is_addressed = not _ADDRESS.isdisjoint(place.words) or any("achu" in word for word in place.words)
    return 4 * ("!" in place.end) + 4.5 * is_addressed


def _voice(reading: Reading, place: Place, found: list[Reading]) -> float:
    """Return a malus for the passive behind an object or somebody who can act, for the active elsewhere."""
    pos = reading.entry.pos
    others = {other.entry.pos for other in found}
    if not place.chosen or pos not in {"active", "passive"} or not {"active", "passive"} <= others:
        return 0
    if reading.entry.word in {"ገባː", "ወጣː"}:  # ይገባል ought to; ኃላፊነቱን ይወጣል fulfils
        is_derived = _is_duty(place.chosen[-1]) if reading.entry.word == "ገባː" else _object(place)
        return -3 * (is_derived != (pos == "passive"))
    has_object_suffix = reading.ending.marked.endswith(("wal", "tal", "N:al"))
    if has_object_suffix or _object(place) or _has_subject_and_object(place.chosen):
        return -2.5 if pos == "passive" else 0
    if reading.kinds & _INFINITIVE:
        return _voice_of_infinitive(pos, place)
    if reading.prefix.marked.startswith(_RELATIVE) and not place.is_last:
        somebody = _is_animate(readings(place.neighbour(1), place.stems)[0])
    else:
        subjects = place.chosen[-1:] if _is_subject(place.chosen[-1]) else place.chosen
        somebody = not reading.kinds & _THIRD or any(map(_is_animate, subjects))
    if somebody and not any(_is_animate(other, "bE") for other in place.chosen):  # በፖሊስ, by whom
        return -1.5 if pos == "passive" and reading.entry.cost else 0  # ይቀጣል is passive more often
    return -2.5 if pos == "active" else 0


def _is_duty(last: Reading) -> bool:
    """Return whether ይገባል behind a reading means "ought to": መማር ይገባል, ልንማር ይገባል."""
    person = last.prefix.marked
    return bool(last.kinds & _INFINITIVE and not person) or bool(last.kinds & _IMPERFECTIVE and person[:1] == "l")


def _is_subject(reading: Reading) -> bool:
    """Return whether a noun before a verb must be its subject: it is definite, and an object would have -ን."""
    is_bare = bool(reading.ending.marked) and reading.ending.marked[-1] not in "nmc:"
    return is_bare and reading.entry.pos == "n" and not reading.prefix.marked


def _has_subject_and_object(chosen: Sequence[Reading]) -> bool:
    """Return whether a definite noun begins the sentence and a bare one precedes the verb: ዛፉ ለሰው ጥላ ይሰጣል."""
    if len(chosen) == 1 or chosen[-2].prefix.marked not in {"", "lE", "yE"}:  # በሁለት ሰዓት is no object
        return False
    first, last = chosen[0], chosen[-1]
    is_definite = first.ending.marked in {"u", "w", "wa"} and not first.prefix.marked
    is_thing = last.entry.pos == "n" and last.entry.source != "nouns_time_religion"
    return is_definite and is_thing and not last.prefix.marked + last.ending.marked


def _voice_of_infinitive(pos: str, place: Place) -> float:
    last = place.last
    is_object = last and not last.prefix.marked and last.entry.pos in {"n", "person", "animal"}
    is_goal = len(place.chosen) > 1 and place.chosen[-2].entry.pos == "prep"  # ወደ ቤት መመለስ
    if is_object and not is_goal and place.neighbour(1) != "HalEbEt":
        return -1 if pos == "passive" else 0
    return -1.5 if pos == "active" else 0


def _object(place: Place) -> bool:
    """Return whether an object stands before the word: a noun or a relative clause in -ን."""
    for reading in reversed(place.chosen):
        is_relative = bool(reading.kinds & ~NOUN & VERB) and reading.prefix.marked[:1] == "y"
        is_object = reading.ending.marked.endswith("n") and not reading.ending.marked.endswith("c:n")
        if is_object and (reading.kinds & NOUN or is_relative):
            return True
        if is_relative:  # what stands before it belongs to it: ሰነድ ያጭበረበረ ሰው ይቀጣል
            return False
    return False


def _is_animate(reading: Reading, *prefixes: str) -> bool:
    """Return whether a reading is somebody who can act, without a preposition or with certain ones."""
    prefixes = prefixes or ("",)
    entry, kinds = reading.entry, reading.kinds
    if reading.prefix.marked not in prefixes or not kinds & NOUN:
        return False
    is_agent = entry.source == "verbs" and not kinds & _INFINITIVE and entry.codes[0] != "m"
    return is_agent or entry.pos in _ANIMATE or entry.source == "words_names" or entry.codes.endswith("N:a")


_Rule = Callable[[Reading, Place, list[Reading]], float]
_RULES: dict[str, _Rule] = {
    "fixed phrase": _phrase,
    "behind what is said": _saying,
    "verb at the end": _last,
    "imperfective before ነበር": _before_was,
    "adjective before a verb": _attribute,
    "command": _command,
    "active or passive": _voice,
}
