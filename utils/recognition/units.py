"""The units of a text that the recogniser hears: Amharic phones, or the letters of any other language."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path

from utils.amharic.joining import whole_words
from utils.core.batching import grouped
from utils.core.languages import AMHARIC, canonical
from utils.core.storage import cached_while_unchanged
from utils.xtts.language_packs import LanguagePack, pack_for
from utils.xtts.pronunciations import overrides as known

# The phones of the embedded recogniser. Length and the glottal stop are left out: they are heard too unreliably.
PHONES = tuple("p t k b d ɡ tʼ kʼ pʼ sʼ t͡ʃ t͡ʃʼ d͡ʒ f v s z ʃ ʒ h m n ɲ l r w j ə u i a e ɨ o".split())
PHONE = re.compile("|".join(sorted(PHONES, key=len, reverse=True)))
NEAR = 6  # words on both sides that may change how a word is read
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
    """A word as it is written, or several that are read together, with the numbers of its units."""

    text: str
    units: tuple[int, ...]


def units_in(words: Iterable[Word]) -> list[int]:
    """Return the units of words, one after the other."""
    return [unit for word in words for unit in word.units]


@dataclass(frozen=True)
class Units:
    """How the words of a language become units; 0 is the blank of CTC."""

    symbols: tuple[str, ...]
    spell: Callable[[str], tuple[str, ...]]
    pieces: Callable[[Sequence[str]], list[list[str]]] = lambda written: [[word] for word in written]

    def words(self, text: str) -> list[Word]:
        """Split a text into words; one without any sound, such as a dash, has no units.

        Words that are written in pieces are joined, and so are those that are read differently on their own.
        """
        numbers = {symbol: number for number, symbol in enumerate(self.symbols, 1)}
        pieces = self.pieces(text.split())
        spoken = ["".join(parts) for parts in pieces]
        groups = [range(at, at + 1) for at in range(len(spoken))]
        if tuple(chain.from_iterable(map(self.spell, spoken))) != self.spell(" ".join(spoken)):
            groups = self._in_context(spoken)
        return [
            Word(
                " ".join(piece for parts in pieces[group.start : group.stop] for piece in parts),
                tuple(numbers[unit] for unit in self.spell(" ".join(spoken[group.start : group.stop]))),
            )
            for group in groups
        ]

    def _in_context(self, written: Sequence[str]) -> list[range]:
        """Group words that are read differently on their own, such as the parts of a telephone number."""

        def belongs(_: Sequence[int], at: int) -> bool:
            before = " ".join(written[max(0, at - NEAR) : at])
            after = " ".join(written[at : at + NEAR])
            return self.spell(before) + self.spell(after) != self.spell(f"{before} {after}")

        return [range(group[0], group[-1] + 1) for group in grouped(range(len(written)), belongs)]


@cached_while_unchanged(8)
def units_of(language: str, pronunciations: Path | None = None) -> Units:
    """Return the units of a language; the pronunciations of a project, in their file, replace those of its words."""
    pack = pack_for(canonical(language), overrides=known(pronunciations))
    if pack.code == AMHARIC.code:
        return Units(PHONES, cache(partial(_phones, pack)), whole_words)
    return Units(tuple(LETTERS), cache(partial(_letters, pack)))


def _phones(pack: LanguagePack, text: str) -> tuple[str, ...]:
    return tuple(PHONE.findall(pack.phonemize(pack.normalize(text))))


def _letters(pack: LanguagePack, text: str) -> tuple[str, ...]:
    """Spell a text in any script with Latin letters."""
    from anyascii import anyascii

    spelled = anyascii(pack.respell(text)).lower()
    for pattern, sound in ENGLISH if pack.code == "en" else ():
        spelled = re.sub(pattern, sound, spelled)
    return tuple(letter for letter in re.sub(r"(.)\1+", r"\1", spelled) if letter in LETTERS)
