"""Amharic in Latin letters, as people chat (selam endet neh), back in its own.

Latin letters leave open which t, k or s is meant, and e stands for three vowels. So every word is read in all ways,
each with a cost, and the analyser of Amharic words chooses. Words in a row decide together whether they are Amharic.
"""

import heapq
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache

from utils.amharic.alphabet import ETHIOPIC, write
from utils.amharic.analysis import Reading, readings
from utils.amharic.kinds import mask
from utils.amharic.lexicon import stems
from utils.amharic.tables import mapping, rows, words

ROW = re.compile(
    r"(?<![A-Za-z@#./])[A-Za-z]+(?:['’][a-z]+)?(?:[ ,0-9]+[A-Za-z]+(?:['’][a-z]+)?)*(?![A-Za-z@/]|\.[a-z])"
)
WORD = re.compile("[A-Za-z]+(?:['’][a-z]+)?")
APART = re.compile(f"(?<![{ETHIOPIC}])([የበከለ]) (?=[{ETHIOPIC}])")  # ke gonder
LAST = re.compile(r"(?<= )እንደ\Z")  # a preposition ends no row: lemin ende
CONSONANTS = {  # the codes that a spelling may mean, the likeliest first
    "sh": "X", "ch": "cC", "gn": "N", "ny": "N", "zh": "Z", "ts": "S", "tz": "S", "ph": "f", "kh": "hk", "th": "tT",
    "b": "b", "c": "kc", "d": "d", "f": "f", "g": "g", "h": "h", "j": "J", "k": "kK", "l": "l", "m": "m", "n": "n",
    "p": "pP", "q": "Kk", "r": "r", "s": "sS", "t": "tT", "v": "v", "w": "w", "x": "XS", "y": "y", "z": "z",
}  # fmt: skip
SEPARATE = {"gn": 1.0, "ny": 1.0, "ts": 1.0, "th": 1.0}  # two letters, or one sound
TWICE = frozenset("tk")  # metual መጥቷል
# Ends of words that are written in another way than they are decoded, with a cost.
ENDS = {
    "lish": ("lesh", 0.0), "lew": ("lehu", 0.7), "chu": ("chihu", 0.0), "gne": ("gn", 0.5),
    "yi": ("y", -0.5), "wu": ("w", -0.5),
}  # fmt: skip
NEXT = 0.7  # cost of each meaning after the likeliest
RARE = 1.5  # of ኧ, which begins no word but ኧረ
BEAM = 120  # ways to read a word that are kept
WIDE, LONG = 480, 7  # the same for a word of so many letters that has no reading among them
VOWELS = {  # with costs; two vowels may have a glottal stop between them
    "a": {"a": 0.0}, "e": {"E": 0.0, "e": 0.6, "I": 0.7}, "i": {"I": 0.0, "i": 0.7, "e": 1.4}, "o": {"o": 0.0},
    "u": {"u": 0.0, "I": 0.9}, "ee": {"i": 0.0, "e": 0.7}, "ie": {"e": 0.0}, "oo": {"u": 0.0}, "ou": {"u": 0.0},
    "aa": {"EHa": 0.0, "aHa": 0.5, "a": 0.5}, "ii": {"H": 0.0, "i": 0.0},
}  # fmt: skip
WITH_A = frozenset({"ua", "wa"})  # behind a consonant: kwas ኳስ, betwa ቤቷ
# Where i is a person's: he does (ሲመጣ, የሚሄድ) more often than I do (ስመጣ, የምሄድ).
THIRD = re.compile("(?:s|b(?!il)|end|[ei]sk|(?:ye|be|ke|le|sile|ende|[ei]ske)m)i(?=[b-df-hj-np-tv-z])")
_FIRST, _SECOND = mask("Gp I1*"), ("Eh", "EX", "ac:hu")  # persons who talk to each other: kinds, ends of a gerund
BEST = 3.5  # what a frequent word may gain
LISTED = 9.0  # cost of a reading from which on the analyser knows no such word
ENGLISH = 0.3  # share of the words in a row that only English has
SHARE = 0.5  # of the words in a row that are Amharic
LONGEST = 24  # letters of a word
SURE = 5  # letters from which on a word by itself can be told from English

Way = tuple[float, str]  # a cost, and the codes that letters may stand for


def decode_rows(text: str) -> str:
    """Write the rows of Latin words that are Amharic in Ethiopic letters."""
    return ROW.sub(lambda match: _decode_row(match[0]), text)


def _decode_row(row: str) -> str:
    found = WORD.findall(row)
    foreign = sum(word.lower() in words("english_common.tsv") and word.lower() not in chat_words() for word in found)
    if foreign > ENGLISH * len(found):
        return row
    decoded = {word: decode(word.lower()) for word in found if not is_english(word) and not word[1:].isupper()}
    known = [word for word in found if decoded.get(word)]
    if len(known) <= foreign or len(known) < SHARE * len(found) or not _are_sure(known):
        return row
    amharic = {word: best or write(_ways(word.lower())[0][1]) for word, best in decoded.items()}
    return APART.sub(r"\1", LAST.sub("እንዴ", WORD.sub(lambda match: amharic.get(match[0], match[0]), row)))


def _are_sure(known: list[str]) -> bool:
    """Return whether words are Amharic for certain; a short one by itself may be anything."""
    return len(known) > 1 or len(known[0]) >= SURE or known[0].lower() in chat_words()


@cache
def chat_words() -> dict[str, str]:
    """Return frequent words with the spellings that people use for them."""
    return {spelled: word for word, spellings in rows("chat_amharic.tsv", columns=2) for spelled in spellings.split()}


def is_english(word: str) -> bool:
    """Return whether a word is common in English, or a name that has its own entry."""
    plain = word.lower()
    listed = plain in mapping("english_words.tsv") or plain in mapping("latin_words.tsv")
    return plain not in chat_words() and (listed or plain in words("english_common.tsv"))


@lru_cache(maxsize=4096)
def decode(word: str) -> str:
    """Return the likeliest word of Amharic that a spelling stands for; empty if the analyser knows none."""
    if word in chat_words() or len(word) > LONGEST:
        return chat_words().get(word, "")
    return _decoded(word, BEAM) or (_decoded(word, WIDE) if len(word) >= LONG else "")


def _decoded(word: str, beam: int) -> str:
    best = None
    ways: Iterable[Way] = _ways(word, beam)
    for end, (meant, more) in ENDS.items():
        if word.endswith(end):
            other = _ways(word.removesuffix(end) + meant, beam)
            ways = heapq.merge(ways, [(cost + more, codes) for cost, codes in other])
    for cost, codes in ways:
        if best and cost - BEST >= best[0]:
            break  # the others cost more before they are even analysed
        known = [reading for reading in readings(codes, stems()) if reading.cost < LISTED]
        if known and (total := cost + min(map(_cost, known))) < (best[0] if best else LISTED + BEST):
            best = total, codes
    return write(best[1]) if best else ""


def _cost(reading: Reading) -> float:
    """Return the cost of a reading in a chat, where commands and everyday words are frequent."""
    is_command = reading.kinds & mask("M*") and not reading.prefix.marked
    is_between_us = reading.kinds & _FIRST or (reading.kinds & mask("G") and reading.ending.marked.startswith(_SECOND))
    is_frequent = reading.entry.word.replace("ː", "") in words("frequent_words.tsv")
    return reading.cost - 2.0 * bool(is_command) - 1.2 * is_frequent - 0.8 * bool(is_between_us)


def _ways(word: str, beam: int = BEAM) -> list[Way]:
    """Return the ways to read a spelling, the cheapest first."""
    ways = [(0.0, "")]
    for step in _steps(word):
        longer = [(cost + more, codes + new) for cost, codes in ways for more, new in step]
        ways = heapq.nsmallest(beam, longer)
    return ways


# Long because it is one pass over the letters: what one may stand for depends on the one before it.
def _steps(word: str) -> Iterator[list[Way]]:
    """Yield for each letter or pair of letters what it may stand for, with its cost."""
    place, before = 0, ""
    person = third.end() if (third := THIRD.match(word)) else 0
    while place < len(word):
        pair = word[place : place + 2]
        is_pair = pair in CONSONANTS or pair in VOWELS or (pair in WITH_A and before in CONSONANTS)
        spelled = pair if is_pair else word[place]
        place += len(spelled)
        if spelled in WITH_A:
            step = [(0.0, "Wa"), (NEXT, "uwa"), (NEXT, "uHa" if spelled == "ua" else "wa")]
        elif place == person:
            step = [(0.0, "i"), (NEXT, "")]
        elif spelled in VOWELS:
            begins = ("",) if before in CONSONANTS else ("y", "H") if before == "i" else ("H",)
            step = _vowel(spelled, begins, is_last=place == len(word))
        elif spelled in CONSONANTS:
            is_double = word[place : place + len(spelled)] == spelled  # said long, or two radicals
            step = _consonant(spelled, is_double=is_double, is_last=place == len(word))
            place += len(spelled) * is_double
        else:
            step = [(0.0, "H")]  # an apostrophe
        before = spelled
        yield step


def _consonant(spelled: str, *, is_double: bool, is_last: bool) -> list[Way]:
    """Return what a consonant may stand for, or two letters that may be two."""
    step = [(NEXT * at, code) for at, code in enumerate(CONSONANTS[spelled])]
    if spelled in SEPARATE:
        step.append((SEPARATE[spelled] + 2 * is_last, "".join(CONSONANTS[letter][0] for letter in spelled)))
    if spelled in TWICE:
        step.append((1.3 - is_double, CONSONANTS[spelled][1] + spelled))
    return step


def _vowel(spelled: str, begins: tuple[str, ...], *, is_last: bool) -> list[Way]:
    """Return what a vowel may stand for; one without a consonant begins with another sound, and ɨ ends no word."""
    meant = {code: cost for code, cost in VOWELS[spelled].items() if not (is_last and code == "I")}
    return [
        (cost + NEXT * at + RARE * (begin + code == "HE"), begin + code.replace("I", ""))
        for at, begin in enumerate(begins)
        for code, cost in meant.items()
    ]
