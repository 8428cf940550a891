"""Whether a verb that may be active or passive is one or the other: ይዘጋል "he closes" or "it is closed"."""

import re
from collections.abc import Sequence
from functools import cache

from utils.amharic.alphabet import read
from utils.amharic.analysis import Reading, readings
from utils.amharic.kinds import NOUN, VERB, mask
from utils.amharic.lexicon import bare
from utils.amharic.place import ACCUSATIVE, MAIN, PLACES, Place
from utils.amharic.tables import rows

_PLURAL = re.compile("w?oc$")
_RELATIVE = ("yEm:", "m")
_DUE = frozenset(read("አለበት የለበትም አለባቸው የለባቸውም").split())
_BEFORE_NOUNS = frozenset(read("ያለ ስለ ወደ እስከ እንደ በስተ").split())
_ANIMATE = frozenset({"person", "animal"})
_NOUNS, _MODIFIERS = frozenset({"n", "time", "name", "group", *_ANIMATE}), frozenset({"adj", "num", "pron"})
_THIRD, _SHE_OR_YOU = mask("Iy* Jy* P* G*"), mask("It Iat Jt Jat")
_IMPERFECTIVE, _INFINITIVE = mask("I*"), mask("N")
_Voices = tuple[str, frozenset[str]]  # of a verb, and the nouns that take the other one
_DEFAULT: _Voices = ("aapp", frozenset())


def weigh_voice(reading: Reading, place: Place, found: list[Reading]) -> float:
    """Return a malus for the passive behind an object or somebody who can act, for the active elsewhere."""
    pos = reading.entry.pos
    others = {other.entry.pos for other in found}
    is_relative = reading.prefix.marked.startswith(_RELATIVE)
    if pos not in {"active", "passive"} or not {"active", "passive"} <= others:
        return 0
    if not (place.chosen or is_relative or _is_mostly_passive(reading)):
        return 0
    if reading.entry.word in {"ገባː", "ወጣː"}:  # ይገባል ought to; ኃላፊነቱን ይወጣል fulfils
        is_derived = any(map(_is_duty, place.chosen[-1:])) if reading.entry.word == "ገባː" else has_object(place)
        return -3 * (is_derived != (pos == "passive"))
    is_paired = any(other.entry.word == reading.entry.word and other.entry.pos != pos for other in found)
    return -2.5 * (pos != _meant(reading, place)) if is_paired else -1


def _is_mostly_passive(reading: Reading) -> bool:
    """Return whether a verb that begins a clause is passive behind any subject: ሲሾም ያልበላ."""
    return reading.prefix.marked not in MAIN and _voices().get(reading.entry.word, _DEFAULT)[0].endswith("ppp")


# Long because the cases are tried in this order, and each rests on what those before it have ruled out.
def _meant(reading: Reading, place: Place) -> str:
    """Return the voice of a verb that the table asks for behind these nouns."""
    voices, exceptions = _voices().get(reading.entry.word, _DEFAULT)
    heads, is_by_somebody = _nouns(place.chosen)
    end = reading.ending.marked
    after = _head_after(place) if reading.prefix.marked.startswith(_RELATIVE) and not place.is_last else None
    is_object = bool(heads) and heads[-1] is place.last and end[:3] not in {"b:E", "l:E"} and _is_bare(*heads)
    if end.endswith(("wal", "tal", "N:al")) or has_object(place):
        return "active"
    is_behind_thing = len(heads) > 1 and not is_animate(heads[0]) and len(place.chosen) > 1
    if is_object and not after and is_behind_thing and place.chosen[-2].prefix.marked == "bE":  # ቡናው በብረት ምጣድ ይቆላል
        is_object, heads = False, heads[:-1]
    actors = is_animate if reading.prefix.marked.startswith("Hnd") else _is_actor
    if is_object and (after or any(map(actors, heads[:-1]))):  # ዛፉ ለሰው ጥላ ይሰጣል, ዳቦ የሚሸጥ ሱቅ
        return "active"
    if reading.kinds & _INFINITIVE:
        return _voice_of_infinitive(place, heads, voices[2])
    subject = after or next(filter(_is_subject, reversed(heads)), heads[-1] if heads else None)
    if not _is_third(reading, subject):
        voice = voices[0]
    elif not subject:
        is_relative = any(word.prefix.marked[:1] == "y" and not word.kinds & NOUN for word in place.chosen)
        voice = voices[2 if is_relative else 3]  # ያልተጻፈ ይረሳል
    else:
        voice = voices[1 if is_animate(subject) and not is_by_somebody else 2]
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
def _voices() -> dict[str, _Voices]:
    """Return the voices of each verb of the table."""
    known: dict[str, _Voices] = {}
    for verbs, voices, nouns in rows("voices.tsv", columns=3):
        exceptions = frozenset(bare(read(noun)) for noun in nouns.strip("-").split())
        known |= dict.fromkeys(verbs.split(), (voices, exceptions))
    return known


def _is_duty(last: Reading) -> bool:
    """Return whether ይገባል behind a reading means "ought to": መማር ይገባል, ልንማር ይገባል."""
    person = last.prefix.marked
    return bool(last.kinds & _INFINITIVE and not person) or bool(last.kinds & _IMPERFECTIVE and person[:1] == "l")


# Long because it is one pass over the words: what one is depends on those before it.
def _nouns(chosen: Sequence[Reading]) -> tuple[list[Reading], bool]:
    """Return the nouns of a clause that may be its subject or object, and whether another is who does it: በፖሊስ.

    Neither has a noun with a preposition, -ን or a postposition.
    """
    heads: list[Reading] = []
    is_by_somebody = False
    is_shown = False  # behind a demonstrative, a time is a noun like others: ያ ክፉ ቀን
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
            is_by_somebody |= is_animate(word, "bE")
            goes_on = pos in _MODIFIERS or bool(after and after.entry.word == "ቤት")
            phrase = before if before[:1] != "y" and goes_on else ""
        elif pos in _NOUNS or word.entry.source == "verbs":
            is_time = pos == "time" and not is_shown and not _is_definite(word)
            is_oblique = phrase or is_time or word.ending.marked.endswith("n")
            if not is_oblique and not (after and bare(after.codes) in PLACES):
                heads.append(word)
            is_by_somebody |= phrase == "bE" and is_animate(word)
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
    return _is_definite(reading) or is_animate(reading)


def _is_bare(*heads: Reading) -> bool:
    """Return whether the last of some nouns may be an object without -ን: ልጁ ሰው ይጠራል, but not ሰው ይጠራል."""
    is_person = is_animate(heads[-1])
    has_subject = heads[-1].entry.pos != "name" and any(_is_definite(head) and is_animate(head) for head in heads[:-1])
    return not _is_definite(heads[-1]) and (has_subject or not is_person)


def _is_actor(reading: Reading) -> bool:
    """Return whether what a noun names may do something to a second one: ዛፉ, but not ስልኬ."""
    return reading.ending.marked in {"u", "w", "wa"} or reading.entry.pos in {"name", "group"} or is_animate(reading)


def _voice_of_infinitive(place: Place, heads: Sequence[Reading], of_things: str) -> str:
    is_object = bool(heads) and heads[-1] is place.last and heads[-1].entry.pos != "name"
    if is_object and _is_definite(heads[-1]) and not is_animate(heads[-1]):  # ምስሩ ከመቀቀሉ በፊት
        return "active" if of_things == "a" else "passive"
    is_goal = len(place.chosen) > 1 and place.chosen[-2].entry.pos == "prep"  # ወደ ቤት መመለስ
    is_due = place.neighbour(1) in _DUE and not any(map(is_animate, heads[:-1]))  # መድኃኒት መሸጥ የለበትም
    return "active" if is_object and not is_goal and not is_due else "passive"


def has_object(place: Place) -> bool:
    """Return whether an object stands before the word: a noun or a relative clause in -ን."""
    has_subject = False
    for reading in reversed(place.chosen):
        is_verb = not reading.kinds & NOUN
        if is_verb and has_subject and reading.prefix.marked not in MAIN:  # ዕዳውን ካልከፈለ ንብረቱ ይሸጣል
            return False
        is_noun = reading.kinds & NOUN and reading.entry.pos != "time"
        has_subject |= bool(is_noun) and not reading.prefix.marked and _is_definite(reading)
        is_relative = bool(reading.kinds & ~NOUN & VERB) and reading.prefix.marked[:1] == "y"
        is_pronoun = reading.entry.pos == "pron" and reading.entry.word != "ምን"
        is_object = ACCUSATIVE.search(reading.codes if is_pronoun else reading.ending.marked)
        if is_object and (reading.kinds & NOUN or is_relative):
            return True
        if is_relative:  # what stands before it belongs to it: ሰነድ ያጭበረበረ ሰው ይቀጣል
            return False
    return False


def is_animate(reading: Reading, *prefixes: str) -> bool:
    """Return whether a reading is somebody who can act, without a preposition or with certain ones."""
    prefixes = prefixes or ("",)
    entry, kinds = reading.entry, reading.kinds
    if reading.prefix.marked not in prefixes or not kinds & NOUN:
        return False
    is_agent = entry.source == "verbs" and not kinds & _INFINITIVE and entry.codes[0] != "m"
    is_agent |= entry.pos == "adj" and reading.ending.marked.startswith("oc:")  # ድሆች
    return is_agent or entry.pos in _ANIMATE or entry.source == "words_names" or entry.codes.endswith("N:a")
