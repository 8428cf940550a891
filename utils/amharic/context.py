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
_ACCUSATIVE = re.compile("(?<!c:)nI?(m|n:a|s:)?$")  # ሁሉንም, ዳቦንና
_PLURAL = re.compile("w?oc$")
_SENTENCE_END = re.compile(r"[.?!:;\n]")
_LONGEST_SENTENCE = 60  # words; a text without marks takes linear time too
_SAY, _THUS = "አለ say", ("እንዲህ", "እንዲያ")
_BARE_IMPERFECTIVE = frozenset({"nEbEr", "nEbErE", "nEbEru", "nEbErku", "nEbErn", "nEbErec", "zEnd", "jEmEr"})
_AFTER_VERBS = frozenset(read("ወይ እንዴ እኮ እንጂ መሰለኝ ይሆን ይሆናል ነበር ሆይ").split())
_SURELY = bare(read("እንጂ"))
_ADDRESS = frozenset({"hoy", "Hbakh", "HbakX", "Hbakacuu", "Hbakachu", "Hnant", "HnantE", "HantE", "Hanci", "lJoc"})
_MAIN = frozenset({"", "y", "t", "H", "Hn:", "Hal", "Hay", "Hat:", "Han:"})
_PERFECTIVE, _COMMAND, _IMPERFECTIVE, _INFINITIVE = mask("P*"), mask("M* J*"), mask("I*"), mask("N")
_THIRD, _SHE_OR_YOU = mask("Iy* Jy* P* G*"), mask("It Iat Jt Jat")
_RELATIVE = ("yEm:", "m")
_DUE = frozenset(read("አለበት የለበትም አለባቸው የለባቸውም").split())
_PLACES = frozenset(read("ላይ ውስጥ ጋር አጠገብ ስር ፊት እዚህ እዚያ ዘንድ መካከል").split())
_BEFORE_NOUNS = frozenset(read("ያለ ስለ ወደ እስከ እንደ በስተ").split())
_ANIMATE = frozenset({"person", "animal"})
_NOUNS, _MODIFIERS = frozenset({"n", "time", "name", "group", *_ANIMATE}), frozenset({"adj", "num", "pron"})


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
    for said in (reading.codes.replace("I", ""), reading.entry.codes.replace("I", "")):
        for codes, side, neighbours in _phrases().get(bare(said), ()):
            around = {"after": [place.neighbour(-1)], "before": [place.neighbour(1)]}.get(side, place.words)
            if said == codes and not neighbours.isdisjoint(around):
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
    if reading.codes == "yalE":  # ያለ ምክንያት without, unless a place says where something is, or እንዲህ ያለ such
        is_place = last and (last.prefix.marked == "bE" or place.neighbour(-1) in _PLACES)
        return 2.5 * (not is_place and place.neighbour(-1)[:3] != "Hnd")
    if '"' in place.before:
        return 6
    return _said_by(reading, last) if last else 0


def _said_by(reading: Reading, last: Reading) -> float:
    is_speaker = _is_animate(last) and (last.ending.marked or last.entry.pos == "name")
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
        is_cleft = "?" in place.end and any(word.entry.word == "ነው" for word in place.chosen)  # ማን ነው ያንኳኳው
        is_open = place.last and not _is_main(place.last) and not is_cleft
        return 2.5 + 1.5 * _object(place) if is_open else 0
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
    """Return a bonus for a verb that can have an object right behind one: በሩን ከፍታ ገባች."""
    last = place.last
    is_verb = reading.entry.pos == "active" and not reading.kinds & NOUN and not reading.prefix.marked
    return 1.2 * bool(is_verb and last and last.kinds & NOUN and _ACCUSATIVE.search(last.ending.marked))


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
    is_addressed = not _ADDRESS.isdisjoint(place.words) or any("achu" in word for word in place.words)
    return 4 * ("!" in place.end or place.neighbour(1) == _SURELY) + 4.5 * is_addressed


def _voice(reading: Reading, place: Place, found: list[Reading]) -> float:
    """Return a malus for the passive behind an object or somebody who can act, for the active elsewhere."""
    pos = reading.entry.pos
    others = {other.entry.pos for other in found}
    is_relative = reading.prefix.marked.startswith(_RELATIVE)
    if pos not in {"active", "passive"} or not {"active", "passive"} <= others or not (place.chosen or is_relative):
        return 0
    if reading.entry.word in {"ገባː", "ወጣː"}:  # ይገባል ought to; ኃላፊነቱን ይወጣል fulfils
        is_derived = any(map(_is_duty, place.chosen[-1:])) if reading.entry.word == "ገባː" else _object(place)
        return -3 * (is_derived != (pos == "passive"))
    is_paired = any(other.entry.word == reading.entry.word and other.entry.pos != pos for other in found)
    return -2.5 * (pos != _meant(reading, place)) if is_paired else -1


def _meant(reading: Reading, place: Place) -> str:
    """Return the voice of a verb that the table asks for behind these nouns."""
    voices, exceptions = _voices().get(reading.entry.word, ("aapp", frozenset()))
    heads, is_by_somebody = _nouns(place.chosen)
    end = reading.ending.marked
    after = _head_after(place) if reading.prefix.marked.startswith(_RELATIVE) and not place.is_last else None
    is_object = bool(heads) and heads[-1] is place.last and end[:3] not in {"b:E", "l:E"} and _is_bare(*heads)
    if end.endswith(("wal", "tal", "N:al")) or _object(place):
        return "active"
    is_behind_thing = len(heads) > 1 and not _is_animate(heads[0]) and len(place.chosen) > 1
    if is_object and not after and is_behind_thing and place.chosen[-2].prefix.marked == "bE":  # ቡናው በብረት ምጣድ ይቆላል
        is_object, heads = False, heads[:-1]
    actors = _is_animate if reading.prefix.marked.startswith("Hnd") else _is_actor
    if is_object and (after or any(map(actors, heads[:-1]))):  # ዛፉ ለሰው ጥላ ይሰጣል, ዳቦ የሚሸጥ ሱቅ
        return "active"
    if reading.kinds & _INFINITIVE:
        return _voice_of_infinitive(place, heads)
    subject = after or next(filter(_is_subject, reversed(heads)), heads[-1] if heads else None)
    if not _is_third(reading, subject):
        voice = voices[0]
    elif not subject:
        is_relative = any(word.prefix.marked[:1] == "y" and not word.kinds & NOUN for word in place.chosen)
        voice = voices[2 if is_relative else 3]  # ያልተጻፈ ይረሳል
    else:
        voice = voices[1 if _is_animate(subject) and not is_by_somebody else 2]
        if _PLURAL.sub("", bare(read(subject.entry.word))) in exceptions:
            voice = {"a": "p", "p": "a"}[voice]
    return "active" if voice == "a" else "passive"


def _is_third(reading: Reading, subject: Reading | None) -> bool:
    """Return whether a verb is in the third person; ት- is she or you."""
    end = reading.ending.marked
    if reading.kinds & _SHE_OR_YOU:
        return end.startswith("al:Ec") or (not end and bool(subject and _is_subject(subject)))
    return bool(reading.kinds & _THIRD)


@cache
def _voices() -> dict[str, tuple[str, frozenset[str]]]:
    """Return for each verb of the table its voices, and the nouns that take the other one."""
    known: dict[str, tuple[str, frozenset[str]]] = {}
    for verbs, voices, nouns in rows("voices.tsv", columns=3):
        exceptions = frozenset(bare(read(noun)) for noun in nouns.strip("-").split())
        known |= dict.fromkeys(verbs.split(), (voices, exceptions))
    return known


def _is_duty(last: Reading) -> bool:
    """Return whether ይገባል behind a reading means "ought to": መማር ይገባል, ልንማር ይገባል."""
    person = last.prefix.marked
    return bool(last.kinds & _INFINITIVE and not person) or bool(last.kinds & _IMPERFECTIVE and person[:1] == "l")


def _nouns(chosen: Sequence[Reading]) -> tuple[list[Reading], bool]:
    """Return the nouns of a clause that may be its subject or object, and whether another is who does it: በፖሊስ.

    Neither has a noun with a preposition, -ን or a postposition.
    """
    heads: list[Reading] = []
    is_by_somebody = False
    is_shown = False  # ያ ክፉ ቀን is no adverb
    phrase = ""  # በአሥራ አንድ ሰዓት: the preposition stands before the first word, the noun is the last
    for number, word in enumerate(chosen):
        pos, before = word.entry.pos, word.prefix.marked
        after = chosen[number + 1] if number + 1 < len(chosen) else None
        if bare(word.codes) in _BEFORE_NOUNS and word.codes != "yal:E":
            phrase = "-"
        elif not word.kinds & NOUN:
            # What stands before a relative clause belongs to it; a converb shares its subject: ሬዲዮው ተበላሽቶ.
            heads = [] if before[:1] == "y" else heads[:1]
            phrase = "-" * (before[:3] in {"bE", "lE", "bEm", "kEm", "lEm"})
        elif before:
            is_by_somebody |= _is_animate(word, "bE")
            goes_on = pos in _MODIFIERS or bool(after and after.entry.word == "ቤት")
            phrase = before if before[:1] != "y" and goes_on else ""
        elif pos in _NOUNS or word.entry.source == "verbs":
            is_time = pos == "time" and not is_shown and not _is_definite(word)
            is_oblique = phrase or is_time or word.ending.marked.endswith("n")
            if not is_oblique and not (after and bare(after.codes) in _PLACES):
                heads.append(word)
            is_by_somebody |= phrase == "bE" and _is_animate(word)
            phrase, is_shown = "", False
        elif pos not in _MODIFIERS:
            phrase = ""
        else:
            is_shown |= pos == "pron"
    return heads, is_by_somebody


def _head_after(place: Place) -> Reading:
    """Return the noun that a relative clause describes."""
    for distance in (1, 2):
        head = readings(place.neighbour(distance) or place.neighbour(1), place.stems)[0]
        if head.entry.pos not in _MODIFIERS:
            break
    return head


def _is_definite(reading: Reading) -> bool:
    """Return whether a noun has an article or an owner; as an object it would have -ን too."""
    return bool(reading.ending.marked) and reading.ending.marked[-1] not in "nmc:"


def _is_subject(reading: Reading) -> bool:
    return _is_definite(reading) or _is_animate(reading)


def _is_bare(*heads: Reading) -> bool:
    """Return whether the last of some nouns may be an object without -ን: ልጁ ሰው ይጠራል, but not ሰው ይጠራል."""
    is_person = _is_animate(heads[-1])
    has_subject = heads[-1].entry.pos != "name" and any(_is_definite(head) and _is_animate(head) for head in heads[:-1])
    return not _is_definite(heads[-1]) and (has_subject or not is_person)


def _is_actor(reading: Reading) -> bool:
    """Return whether what a noun names may do something to a second one: ዛፉ, but not ስልኬ."""
    return reading.ending.marked in {"u", "w", "wa"} or reading.entry.pos in {"name", "group"} or _is_animate(reading)


def _voice_of_infinitive(place: Place, heads: Sequence[Reading]) -> str:
    is_object = bool(heads) and heads[-1] is place.last and heads[-1].entry.pos != "name"
    is_goal = len(place.chosen) > 1 and place.chosen[-2].entry.pos == "prep"  # ወደ ቤት መመለስ
    is_due = place.neighbour(1) in _DUE and not any(map(_is_animate, heads[:-1]))  # መድኃኒት መሸጥ የለበትም
    return "active" if is_object and not is_goal and not is_due else "passive"


def _object(place: Place) -> bool:
    """Return whether an object stands before the word: a noun or a relative clause in -ን."""
    has_subject = False
    for reading in reversed(place.chosen):
        is_verb = not reading.kinds & NOUN
        if is_verb and has_subject and reading.prefix.marked not in _MAIN:  # ዕዳውን ካልከፈለ ንብረቱ ይሸጣል
            return False
        has_subject |= bool(reading.kinds & NOUN) and not reading.prefix.marked and _is_definite(reading)
        is_relative = bool(reading.kinds & ~NOUN & VERB) and reading.prefix.marked[:1] == "y"
        is_pronoun = reading.entry.pos == "pron" and reading.entry.word != "ምን"
        is_object = _ACCUSATIVE.search(reading.codes if is_pronoun else reading.ending.marked)
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
    is_agent |= entry.pos == "adj" and reading.ending.marked.startswith("oc:")  # ድሆች
    return is_agent or entry.pos in _ANIMATE or entry.source == "words_names" or entry.codes.endswith("N:a")


_Rule = Callable[[Reading, Place, list[Reading]], float]
_RULES: dict[str, _Rule] = {
    "fixed phrase": _phrase,
    "behind what is said": _saying,
    "verb at the end": _last,
    "imperfective before ነበር": _before_was,
    "adjective before a verb": _attribute,
    "command": _command,
    "behind an object": _behind_object,
    "what somebody says": _quoted,
    "active or passive": _voice,
}
