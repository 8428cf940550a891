"""Where ɨ is heard: Amharic writes no vowel in the sixth order and breaks the clusters that are hard to say.

Going from left to right over each run of consonants, a geminate counting as two: a word never begins with two
consonants; two between vowels part as coda and onset; where three meet, or two at the end of a word, the first stays a
coda if it is at least as sonorous as the second, otherwise ɨ follows it.
"""

import re
from collections.abc import Iterable

from utils.amharic.alphabet import SLOT, decode

SONORITY = dict.fromkeys("wy", 7) | dict.fromkeys("r", 6) | dict.fromkeys("l", 5) | dict.fromkeys("mnN", 4)
SONORITY |= dict.fromkeys("fvszXZh", 3) | dict.fromkeys("bdgJ", 2) | dict.fromkeys("ptkcTKPSCH", 1)
# Clusters said together although the second consonant is the more sonorous: ልብስ lɨbs, ጥቅስ tʼɨkʼs, ታክስ taks.
WITH_S = frozenset({"bs", "ks", "ps", "Ks"})
# Pairs that stay together after a consonant: the first after any (አምስት amɨst, ፋሽስት faʃɨst), the others, a nasal and its
# stop, after a liquid or nasal (ስምንት sɨmɨnt, ቅርንጫፍ kʼɨrɨnt͡ʃʼaf).
TIGHT = frozenset({"st", "Xt", "sT"})
NASAL = frozenset({"n" + stop for stop in "tdkgTKcCJsSz"} | {"m" + stop for stop in "bpP"})
# At the end of a word -ም and -ን are suffixes more often than parts of the stem: ወይም wəjɨm, ቤታቸውን betat͡ʃːəwɨn.
SUFFIXED = frozenset({"ym", "wm"})
# Equals that part: ምግብ mɨɡɨb, ወንድምን wəndɨmɨn. Voiceless equals stay: ወቅት wəkʼt.
PARTING = frozenset("bdgJmnN")

_LONGEST_CACHED = 6  # slots; longer runs are noise, and remembering them would let the table grow without end
_SLOT = re.compile(SLOT)
_RUN = re.compile(f"=[^>]*|<(?:{SLOT})+>?|(?:{SLOT}){{2,}}>?")


def insert_vowels(words: Iterable[str]) -> list[str]:
    """Return the phones of code words, with ɨ where it is heard; a word that begins with `=` is complete already."""
    # One text and one pass: a call for each word would cost more than the work itself.
    text = "<" + ">\n<".join(words) + ">"
    return decode(_RUN.sub(lambda match: _runs[match[0]], text)).split("\n")


class _Runs(dict[str, str]):
    """The runs of consonants seen so far, each with its vowels: a few hundred in any amount of Amharic."""

    def __missing__(self, run: str) -> str:
        if run[0] == "=":
            return run.removeprefix("=H")
        slots = _SLOT.findall(run)
        final = run[-1] == ">"
        onset = ""
        if run[0] == "<":
            first, *slots = slots
            onset = "" if first == "H" else first  # a glottal stop that begins a word is not written
            onset += "I" if slots or final else ""
        broken = onset + "".join(_after_vowel(slots, final=final))
        if len(run) <= _LONGEST_CACHED:
            self[run] = broken
        return broken


_runs = _Runs()


# Long because it runs for each new run of consonants, and a call for each rule would slow the front end down.
def _after_vowel(slots: list[str], *, final: bool) -> list[str]:
    out: list[str] = []
    place = 0
    while len(slots) - place > 1:
        # No rule looks further than the fourth consonant.
        first, second, *rest = slots[place : place + 4]
        if not rest and not final:
            parted = _never_meet(first, second) and (first != "h" or second[0] in "hHy" or ":" in second)
            return [*out, first, *("I" * parted), second]
        if not _is_coda(first, second, rest):
            out += [first, "I"]
            place += 1
        elif not rest or first + second == "ks":
            out += [first, second]
            place += 2
        # A glide may belong to the vowel, so that a coda follows it: ሳይንስ sajns, አውስትራሊያ awstɨralija.
        elif second + rest[0] in {"y": NASAL, "w": TIGHT | NASAL}.get(first, ()):
            out.append(first)
            place += 1
        else:
            out += [first, second, "I"]
            place += 2
    return out + slots[place:]


def _is_coda(first: str, second: str, rest: list[str]) -> bool:
    """Return whether the first consonant closes the syllable, before a consonant that has no vowel after it."""
    if _never_meet(first, second):
        return False
    if rest and ":" in rest[0]:  # the ɨ before the geminate gives the second a syllable: ትግርኛ tɨɡrɨɲːa
        return True
    if rest and _is_pair(first, second, rest):
        return False
    if not rest and (second in "Hh" or first + second in SUFFIXED):
        return False
    if first[0] in PARTING and SONORITY[first[0]] == SONORITY[second[0]]:
        return False
    return first + second in WITH_S or SONORITY[first[0]] >= SONORITY[second[0]]


def _never_meet(first: str, second: str) -> bool:
    return ":" in first or ":" in second or first[0] in "Hh" or first[0] == second[0]


def _is_pair(first: str, second: str, rest: list[str]) -> bool:
    """Return whether the second and third consonant stay together and leave the first to a syllable of its own."""
    pair = second + rest[0][0]
    if pair in TIGHT:
        return first not in "wy" or len(rest) == 1
    return pair in NASAL and first in "rlmn"
