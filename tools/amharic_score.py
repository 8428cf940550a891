"""Score the Amharic front end on a list: `python -m tools.amharic_score FILE [--wrong N]`.

Three kinds of list, tab-separated, with `#` comments and `|` between accepted variants:

    words        written form, phones, part of speech
    sentences    register, written sentence, phones of its words separated by spaces
    homographs   sentence, the word in question as it stands there, its phones

The kind is recognised by the columns that hold Ethiopic letters. An initial glottal stop does not count. The last
lines count the words that differ only in a habit on which the authors of our lists disagree, see HABITS, and give the
figures with these habits taken as one.
"""

import argparse
import difflib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from utils.amharic import normalize, phonemize
from utils.amharic.alphabet import WORD

WORD_MARKS = ".,;:?!\"'()"
ALTERNATIVES = re.compile(r"\s*\|\s*")
PHONE = re.compile(r"(?:[td]͡[ʃʒ]|[^\sːʼ͡])ʼ?ː?")
LONG = "ː"
# Both forms are said, and each author keeps to one (docs/decisions/0016): what is left out on both sides to compare.
HABITS = {
    "length of -m": re.compile("(?<=m)ː$"),
    "ɨ in -wɨn": re.compile("(?<=w)ɨ(?=n(?:ɨ|$))"),
    "ʔ between vowels": re.compile("(?<=[əuiaeɨo])ʔ(?=[əuiaeɨo])"),
    "ɨ in ajɨCː": re.compile("(?<=aj)ɨ(?=(?:[td]͡[ʃʒ]|[^ː])ʼ?ː)"),
}


class Word(NamedTuple):
    """A word with its accepted variants, what is said, and the phones of the nearest variant paired with those said."""

    expected: str
    said: str
    pairs: list[tuple[str, str]]

    @property
    def is_right(self) -> bool:
        return not differences(self.pairs)

    def alike(self, *habits: str) -> "Word":
        """Return the word without what only habits add, by default all of them."""
        return compared(_alike(self.expected, habits or HABITS), _alike(self.said, habits or HABITS))

    @property
    def habit(self) -> str:
        """Return the habit in which it differs, if it differs in nothing else."""
        if self.is_right or not self.alike().is_right:
            return ""
        return next((name for name in HABITS if self.alike(name).is_right), "several")

    def __str__(self) -> str:
        return self.said if self.is_right else f"[{self.said} ≠ {self.expected}]"


class Item(NamedTuple):
    """A row of a list."""

    group: str  # part of speech, or register
    text: str
    words: list[Word]

    @property
    def is_right(self) -> bool:
        return all(word.is_right for word in self.words)


def compared(expected: str, said: str) -> Word:
    """Compare what is said with the nearest of the accepted variants."""
    variants = (variant.strip().removeprefix("ʔ") for variant in ALTERNATIVES.split(expected))
    return Word(expected, said, min((align(variant, said) for variant in variants), key=differences))


def _alike(phones: str, habits: Iterable[str]) -> str:
    variants = ALTERNATIVES.split(phones)
    for habit in habits:
        variants = [HABITS[habit].sub("", variant.strip()) for variant in variants]
    return "|".join(variants)


def align(expected: str, spoken: str) -> list[tuple[str, str]]:
    """Pair the phones of two pronunciations, each with its length, with the fewest differences."""
    wanted, said = (
        PHONE.findall(phones.replace("g", "ɡ").replace("ʷː", "ːw").replace("ʷ", "w")) for phones in (expected, spoken)
    )
    pairs: list[tuple[str, str]] = []
    for part in Levenshtein.opcodes(wanted, said):
        here, there = wanted[part.src_start : part.src_end], said[part.dest_start : part.dest_end]
        pairs += zip_longest(here, there, fillvalue="")
    return pairs


def differences(pairs: Sequence[tuple[str, str]]) -> int:
    return sum(wanted != said for wanted, said in pairs)


def line(name: str, items: Sequence[Item]) -> str:
    """Write down the scores of a class of items."""
    words = list(chain.from_iterable(item.words for item in items))
    pairs = list(chain.from_iterable(word.pairs for word in words))
    long, said = (sum(LONG in pair[side] for pair in pairs) for side in (0, 1))
    found = sum(LONG in wanted and LONG in heard for wanted, heard in pairs)
    f1 = 2 * found / max(long + said, 1)
    return (
        f"{name:24} items {share(items)}   words {share(words)}   "
        f"phone error {100 * differences(pairs) / max(1, sum(bool(wanted) for wanted, _ in pairs)):.1f} %   "
        f"length P R F1 {found / max(said, 1):.3f} {found / max(long, 1):.3f} {f1:.3f}   "
        f"without length {share([word for word in words if LONG not in word.expected])}"
    )


def share(parts: Sequence[Word | Item]) -> str:
    """Write how many of them are right."""
    right = sum(part.is_right for part in parts)
    return f"{right}/{len(parts)} = {100 * right / len(parts):.1f} %" if parts else "-"


def spoken_words(text: str) -> list[str]:
    """Return the phones of each word of a written text."""
    said = [word.strip(WORD_MARKS) for word in phonemize(normalize(text)).split()]
    return [word for word in said if word]


def read(row: Sequence[str]) -> Item:
    """Return a row of any kind of list with what is said."""
    if not WORD.search(row[0]):
        expected = [word.strip(WORD_MARKS) for word in ALTERNATIVES.sub("|", row[2]).split()]
        return Item(row[0], row[1], [compared(*pair) for pair in _aligned(expected, spoken_words(row[1]))])
    if not WORD.search(row[1]):
        said = " ".join(spoken_words(row[0]))
        return Item(row[2] if len(row) > 2 else "word", row[0], [compared(row[1], said)])
    sentence, word, expected_phones = row[:3]
    written = [token.strip("።፣፤፥፦፧" + WORD_MARKS) for token in sentence.split()]
    said_words = spoken_words(sentence)
    place = written.index(word) if word in written else 0
    said = said_words[place] if len(said_words) == len(written) else ""
    return Item("homographs", f"{sentence}  ({word})", [compared(expected_phones, said)])


def _aligned(expected: list[str], said: list[str]) -> list[tuple[str, str]]:
    """Pair the words of two readings; where their numbers differ, words that are not said count as wrong."""
    if len(expected) == len(said):
        return list(zip(expected, said, strict=True))
    pairs: list[tuple[str, str]] = []
    for tag, i, j, k, m in difflib.SequenceMatcher(a=expected, b=said, autojunk=False).get_opcodes():
        here, there = expected[i:j], said[k:m]
        if tag == "equal" or len(here) == len(there):
            pairs += zip(here, there, strict=True)
        else:
            there += [""] * (len(here) - len(there))
            pairs += [(word, there[place]) for place, word in enumerate(here)] or [("-", " ".join(there))]
    return pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--wrong", type=int, default=0, help="how many wrong items to print")
    arguments = parser.parse_args()
    rows = [row.split("\t") for row in arguments.file.read_text(encoding="utf-8").splitlines()]
    items = [read([cell.strip() for cell in row]) for row in rows if len(row) >= 2 and not row[0].startswith("#")]
    groups = defaultdict[str, list[Item]](list)
    for item in items:
        groups[item.group].append(item)
    for name, members in [*sorted(groups.items()), ("all", items)]:
        print(line(name, members))
    habits = Counter(word.habit for item in items for word in item.words)
    counts = ", ".join(f"{name} {habits[name]}" for name in (*HABITS, "several"))
    print(f"words that differ only in a habit: {counts}")
    alike = [item._replace(words=[word.alike() for word in item.words]) for item in items]
    print(line("all, habits as one", alike))
    for item in [item for item in items if not item.is_right][: arguments.wrong]:
        print(item.group, item.text, " ".join(map(str, item.words)), sep="\t")


if __name__ == "__main__":
    main()
