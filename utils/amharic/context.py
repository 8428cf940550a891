"""Which reading of a word is meant: the likeliest one, unless its neighbours in the sentence speak for another."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from utils.amharic.alphabet import CONSONANT_CODES, read
from utils.amharic.analysis import Reading, readings
from utils.amharic.kinds import NOUN, VERB, mask
from utils.amharic.lexicon import Stems, bare
from utils.amharic.place import ACCUSATIVE, MAIN, PLACES, Place
from utils.amharic.tables import rows
from utils.amharic.verb_voices import has_object, is_animate, weigh_voice

_LETTER = re.compile(f"([{CONSONANT_CODES}])(:?)")
_SENTENCE_END = re.compile(r"[.?!:;\n]")
_LONGEST_SENTENCE = 60  # words; a text without marks takes linear time too
_SAY, _THUS = "አለ say", ("እንዲህ", "እንዲያ")
_BARE_IMPERFECTIVE = frozenset({"nEbEr", "nEbErE", "nEbEru", "nEbErku", "nEbErn", "nEbErec", "zEnd", "jEmEr"})
_AFTER_VERBS = frozenset(read("ወይ እንዴ እኮ እንጂ መሰለኝ ይሆን ይሆናል ነበር ሆይ").split())
_SURELY = bare(read("እንጂ"))
_ADDRESS = frozenset({"hoy", "Hbakh", "HbakX", "Hbakacuu", "Hbakachu", "Hnant", "HnantE", "HantE", "Hanci", "lJoc"})
_PERFECTIVE = mask("P*")
_COMMAND = mask("M* J*")
_IMPERFECTIVE = mask("I*")
_MY_CONVERB = mask("Gp")
_OF_ME = re.compile("(^|[Ea])[kh]u")  # the person of what I did: ሄድኩ, ሰማሁ, እሰማለሁ
_Phrases = dict[str, list[tuple[str, str, frozenset[str]]]]  # by a word: how it is said, beside which words


class Choice(NamedTuple):
    """A word as it is said, with all its readings, the chosen one first, and why it was chosen."""

    codes: str
    readings: tuple[Reading, ...]
    why: str


def read_words(words: Sequence[str], stems: Stems, gaps: Sequence[str]) -> list[Choice]:
    """Read the code words of a text in their order; the gaps are what stands before the first and after each."""
    choices = []
    chosen: list[Reading] = []
    for start, end in _sentences(gaps):
        sentence = [word.replace(":", "") for word in words[start:end]]
        earlier = chosen if ";" in gaps[start] else []
        chosen = []
        for place in range(start, end):
            here = Place(sentence, chosen, earlier, gaps[place], gaps[place + 1], gaps[end], stems)
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
    for said in (reading.codes.replace("I", ""), reading.entry.codes.replace("I", "")):
        for codes, side, neighbours in _phrases().get(bare(said), ()):
            around = {"after": [place.neighbour(-1)], "before": [place.neighbour(1)]}.get(side, place.words)
            if said == codes and not neighbours.isdisjoint(around):
                return 6
    return 0


@cache
def _phrases() -> _Phrases:
    phrases: _Phrases = {}
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
    if reading.codes == "yalE":  # ያለ ምክንያት without, unless a place says where something is, or እንዲህ ያለ such
        is_place = last and (last.prefix.marked == "bE" or place.neighbour(-1) in PLACES)
        return 2.5 * (not is_place and place.neighbour(-1)[:3] != "Hnd")
    if '"' in place.before:
        return 6
    return _said_by(reading, last) if last else 0


def _said_by(reading: Reading, last: Reading) -> float:
    is_speaker = is_animate(last) and (last.ending.marked or last.entry.pos == "name")
    if last.entry.word in _THUS or (reading.prefix.marked and is_speaker):  # አባትህ ያለው, ጳውሎስ እንዳለ
        return 3
    if last.prefix.marked.startswith("HndEm:") and not last.kinds & NOUN:  # እንደሚመጡ አሉ
        return 3.5
    is_word_of_sound = last.entry.pos == "interj" or (last.entry.pos == "adv" and last.codes.endswith(":"))
    return 5 if is_word_of_sound or _is_finite(last) else 0


def _is_finite(reading: Reading) -> bool:
    """Return whether a reading can end a sentence."""
    if reading.entry.word in {"ነው", "ናት", "ናቸːው"}:
        return not reading.prefix.marked
    if reading.prefix.marked not in MAIN or not reading.kinds & ~NOUN & VERB:
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
        is_cleft = "?" in place.end and any(word.entry.word == "ነው" for word in place.chosen)  # ማን ነው ያንኳኳው
        is_open = place.last and not _is_main(place.last) and not is_cleft
        return 2.5 + 1.5 * has_object(place) if is_open else 0
    if reading.ending.marked.endswith("n:a"):
        return 0
    is_inside = (
        not place.after.strip()
        and not reading.prefix.marked
        and reading.kinds & _PERFECTIVE
        and place.neighbour(1)[:2] not in {"Ha", "bl"}
        and place.neighbour(1) not in _AFTER_VERBS
    )
    return -1.2 if is_inside and place.chosen else -2.5 * bool(is_inside)


def _behind_object(reading: Reading, place: Place, _: list[Reading]) -> float:
    """Return a bonus for a verb that can have an object right behind one: በሩን ከፍታ ገባች, ከተማዋን የመሠረቱ ንጉሥ."""
    last = place.last
    is_verb = reading.entry.pos == "active" and not reading.kinds & NOUN and reading.prefix.marked in {"", "yE"}
    return 1.2 * bool(is_verb and last and last.kinds & NOUN and ACCUSATIVE.search(last.ending.marked))


def _possessed(reading: Reading, place: Place, _: list[Reading]) -> float:
    """Return a malus for a finite verb between a possessor and more words: የዶሮው ወጡ ጣፈጠኝ."""
    last = place.last
    is_possessor = last and last.prefix.marked == "yE" and last.kinds & NOUN and not place.before.strip()
    return -2.5 * bool(is_possessor and not place.is_last and not place.after.strip() and _is_finite(reading))


def _first_person(reading: Reading, place: Place, _: list[Reading]) -> float:
    """Return a bonus for "I, having done" in a sentence about what I did: ልጄን ስሜ ሄድኩ."""
    if place.is_last or not _is_my_converb(reading):
        return 0
    end = readings(place.words[-1], place.stems)[0]  # ታንኩ "the tank" is not "I"
    is_mine = not end.kinds & NOUN and _OF_ME.search(end.ending.marked)
    is_chain = place.last and _is_my_converb(place.last)  # ዳኛ አድርጌ ሹሜ
    return 1.2 * bool(is_mine) + 0.6 * bool(is_mine and is_chain)


def _is_my_converb(reading: Reading) -> bool:
    return bool(reading.kinds & _MY_CONVERB) and reading.ending.marked == "e"


def _quoted(reading: Reading, place: Place, _: list[Reading]) -> float:
    """Return a bonus for "I" before a verb of saying: አልመጣም አለ "he said: I do not come"."""
    if not (reading.kinds & mask("I1*") and reading.prefix.marked == "Hal" and place.neighbour(1)):
        return 0
    is_said = any(other.entry.word in {_SAY, "ብሎ"} for other in readings(place.neighbour(1), place.stems))
    return 2.5 * is_said


def _attribute(reading: Reading, place: Place, _: list[Reading]) -> float:
    """Return a malus for an adjective or a number before a verb: ሰው መቶ አመለጠ."""
    after = place.neighbour(1)
    if not (reading.entry.pos == "adj" or reading.entry.word == "መቶ") or not after or place.after.strip():
        return 0
    verb = readings(after, place.stems)[0]
    is_verb = verb.entry.pos in {"active", "passive"} and not verb.kinds & NOUN
    return -4.0 * (is_verb and verb.entry.word[:2] not in {"አለ", "ሆነ"})


def _before_was(reading: Reading, place: Place, _: list[Reading]) -> float:
    return 3.5 if reading.kinds & _IMPERFECTIVE and place.neighbour(1) in _BARE_IMPERFECTIVE else 0


def _command(reading: Reading, place: Place, _: list[Reading]) -> float:
    """Return a bonus for a command: before an exclamation mark, or to somebody who is addressed."""
    if not reading.all_kinds & mask("M*") or reading.prefix.marked:
        return 0
    goes_on = reading.ending.marked.endswith("n:a")  # ታጠፉና ቀጥ ብላችሁ ሂዱ
    if not (place.is_last or goes_on or place.after.strip() or place.neighbour(1) == _SURELY):
        return 0
    is_told = any(word.prefix.marked == "Hat:" and word.kinds & _COMMAND for word in (*place.earlier, *place.chosen))
    is_addressed = is_told or not _ADDRESS.isdisjoint(place.words) or any("achu" in word for word in place.words)
    return 4 * ("!" in place.end or place.neighbour(1) == _SURELY) + 4.5 * is_addressed


_RULES = {
    "fixed phrase": _phrase,
    "behind what is said": _saying,
    "verb at the end": _last,
    "imperfective before ነበር": _before_was,
    "adjective before a verb": _attribute,
    "command": _command,
    "behind an object": _behind_object,
    "what somebody says": _quoted,
    "possessed": _possessed,
    "first person": _first_person,
    "active or passive": weigh_voice,
}
