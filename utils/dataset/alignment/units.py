"""The units of a text that the recogniser hears: Amharic phones, or the letters of any other language."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from utils.core.languages import AMHARIC, canonical
from utils.core.storage import cached_while_unchanged
from utils.xtts.language_packs import LanguagePack, pack_for
from utils.xtts.pronunciations import current

# The phones of the embedded recogniser. Length and the glottal stop are left out: they are heard too unreliably.
PHONES = (
    *("p", "t", "k", "b", "d", "ɡ", "tʼ", "kʼ", "pʼ", "sʼ", "t͡ʃ", "t͡ʃʼ", "d͡ʒ", "f", "v", "s", "z", "ʃ", "ʒ", "h"),
    *("m", "n", "ɲ", "l", "r", "w", "j", "ə", "u", "i", "a", "e", "ɨ", "o"),
)
PHONE = re.compile("|".join(sorted(PHONES, key=len, reverse=True)))
LETTERS = "abcdefghijklmnopqrstuvwxyz"
# The phones that a Latin letter most often stands for: how the letters of a new language are recognised at first.
SOUNDS_OF = {letter: letter for letter in "bdfhklmnprtvwz"} | {
    "a": "a ə e", "c": "k s", "e": "e ɨ ə i", "g": "ɡ d͡ʒ", "i": "i ɨ", "j": "d͡ʒ j", "o": "o a", "q": "k", "s": "s z",
    "u": "u ə", "x": "s k", "y": "j i",
}  # fmt: skip
# English spelling is irregular; these are the groups of letters with one sound.
ENGLISH = (
    *((r"\bkn", "n"), (r"\bwr", "r"), (r"wh", "w"), (r"tch", "ch"), (r"ph", "f"), (r"gh", ""), (r"ck", "k")),
    *((r"qu", "kw"), (r"c(?=[eiy])", "s"), (r"tion", "shon"), (r"ee|ea", "i"), (r"oo", "u"), (r"ou|ow", "au")),
    (r"(?<=[^aeiou\W])e\b", ""),
)


@dataclass(frozen=True)
class Word:
    """A word as it is written, with the numbers of its units."""

    text: str
    units: tuple[int, ...]


@dataclass(frozen=True)
class Units:
    """How the words of a language become units; 0 is the blank of CTC."""

    symbols: tuple[str, ...]
    spell: Callable[[str], Sequence[str]]
    written: re.Pattern[str] = re.compile(r"\S+")  # a word, or a phrase that has a pronunciation of its own

    def words(self, text: str) -> list[Word]:
        """Split a text into its written words; one without any sound, such as a dash, has no units."""
        numbers = {symbol: number for number, symbol in enumerate(self.symbols, 1)}
        return [Word(word, tuple(numbers[unit] for unit in self.spell(word))) for word in self.written.findall(text)]


@cached_while_unchanged(8)
def units_of(language: str, pronunciations: Path | None = None) -> Units:
    """Return the units of a language; the pronunciations of a project, in their file, replace those of its words."""
    pack = pack_for(canonical(language), overrides=current(pronunciations))
    phrases = "|".join(re.escape(written) for written in pack.overrides if " " in written)
    written = re.compile(rf"\S*?(?:{phrases})\S*|\S+" if phrases else r"\S+")
    if pack.code == AMHARIC.code:
        return Units(PHONES, cache(partial(_phones, pack)), written)
    return Units(tuple(LETTERS), cache(partial(_letters, pack)), written)


def _phones(pack: LanguagePack, word: str) -> tuple[str, ...]:
    return tuple(PHONE.findall(pack.phonemise(pack.normalise(word))))


def _letters(pack: LanguagePack, word: str) -> tuple[str, ...]:
    """Spell a word in any script with Latin letters."""
    from anyascii import anyascii

    spelled = anyascii(pack.respell(word)).lower()
    for pattern, sound in ENGLISH if pack.code == "en" else ():
        spelled = re.sub(pattern, sound, spelled)
    return tuple(letter for letter in re.sub(r"(.)\1+", r"\1", spelled) if letter in LETTERS)
