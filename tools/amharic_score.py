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
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from rapidfuzz.distance import Levenshtein

from utils.amharic import normalize, phonemize
from utils.amharic.alphabet import WORD

WORD_MARKS = ".,;:?!\"'()"
ALTERNATIVES = re.compile(r"\s*\|\s*")
PHONE = re.compile(r"(?:[td]͡[ʃʒ]|[^\sːʼ͡])ʼ?ː?")
Pairs = list[tuple[str, str]]
# Both forms are said, and each author keeps to one (docs/decisions/0016): what is left out on both sides to compare.
HABITS = {
    "length of -m": re.compile("(?<=m)ː$"),
    "ɨ in -wɨn": re.compile("(?<=w)ɨ(?=n(?:ɨ|$))"),
    "ɨ in ajɨCː": re.compile("(?<=aj)ɨ(?=(?:[td]͡[ʃʒ]|[^ː])ʼ?ː)"),
}


@dataclass
class Result:
    """Counts of one class of items: a part of speech, a register, or all of the list."""

    items: int = 0
    right: int = 0
    words: int = 0
    right_words: int = 0
    short: int = 0  # words without a long consonant
    right_short: int = 0
    phones: int = 0
    wrong_phones: int = 0
    long: int = 0  # consonants that are long
    found: int = 0
    spurious: int = 0

    def add_word(self, expected: str, spoken: str) -> bool:
        """Count one word and return whether it is right; the nearest of the accepted variants is compared."""
        variants = [variant.strip().removeprefix("ʔ") for variant in ALTERNATIVES.split(expected)]
        pairs = min((align(variant, spoken) for variant in variants), key=_differences)
        right = _differences(pairs) == 0
        self.phones += sum(bool(wanted) for wanted, _ in pairs)
        self.wrong_phones += _differences(pairs)
        self.long += sum("ː" in wanted for wanted, _ in pairs)
        self.found += sum("ː" in wanted and "ː" in said for wanted, said in pairs)
        self.spurious += sum("ː" in said and "ː" not in wanted for wanted, said in pairs)
        self.words += 1
        self.right_words += right
        if not any("ː" in variant for variant in variants):
            self.short += 1
            self.right_short += right
        return right

    def add_item(self, pairs: Pairs) -> bool:
        """Count one item with its words and return whether all of them are right."""
        mistakes = sum(not self.add_word(expected, said) for expected, said in pairs)
        self.items += 1
        self.right += not mistakes
        return not mistakes

    def line(self, name: str) -> str:
        precision, recall = self.found / max(self.found + self.spurious, 1), self.found / max(self.long, 1)
        f1 = 2 * precision * recall / max(precision + recall, 1e-9)
        return (
            f"{name:24} items {self.right}/{self.items} = {_share(self.right, self.items)}   "
            f"words {self.right_words}/{self.words} = {_share(self.right_words, self.words)}   "
            f"phone error {_share(self.wrong_phones, self.phones)}   "
            f"length P R F1 {precision:.3f} {recall:.3f} {f1:.3f}   "
            f"without length {_share(self.right_short, self.short)}"
        )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def align(expected: str, spoken: str) -> Pairs:
    """Pair the phones of two pronunciations, each with its length, with the fewest differences."""
    wanted, said = (PHONE.findall(phones.replace("g", "ɡ").replace("ʷ", "w")) for phones in (expected, spoken))
    pairs: Pairs = []
    for part in Levenshtein.opcodes(wanted, said):
        here, there = wanted[part.src_start : part.src_end], said[part.dest_start : part.dest_end]
        pairs += zip_longest(here, there, fillvalue="")
    return pairs


def _differences(pairs: Pairs) -> int:
    return sum(wanted != said for wanted, said in pairs)


def spoken_words(text: str) -> list[str]:
    """Return the phones of each word of a written text."""
    said = [word.strip(WORD_MARKS) for word in phonemize(normalize(text)).split()]
    return [word for word in said if word]


@dataclass
class Score:
    """What a list gives: its kind, the results by class, and the items that are wrong."""

    kind: str
    results: dict[str, Result]
    everything: Result
    alike: Result  # everything with the habits taken as one
    habits: Counter[str]  # words that differ in one of them alone
    wrong: list[str]


def score(path: Path, kind: str | None = None) -> Score:
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    rows = [[cell.strip() for cell in row] for row in rows if len(row) >= 2 and not row[0].startswith("#")]
    kind = kind or _kind(rows[0])
    results: dict[str, Result] = defaultdict(Result)
    done = Score(kind, results, Result(), Result(), Counter(), [])
    for row in rows:
        group, item, pairs = _pairs(row, kind)
        done.alike.add_item([(_alike(expected), _alike(said)) for expected, said in pairs])
        results[group].add_item(pairs)
        if not done.everything.add_item(pairs):
            done.habits.update(filter(None, (_habit(expected, said) for expected, said in pairs)))
            said = " ".join(said if _is_right(expected, said) else f"[{said} ≠ {expected}]" for expected, said in pairs)
            done.wrong.append(f"{group}\t{item}\t{said}")
    return done


def _alike(phones: str, *habits: str) -> str:
    """Return phones without what only a habit adds."""
    variants = ALTERNATIVES.split(phones)
    for habit in habits or HABITS:
        variants = [HABITS[habit].sub("", variant.strip()) for variant in variants]
    return "|".join(variants)


def _habit(expected: str, said: str) -> str | None:
    """Return the habit in which a word differs, if it differs in nothing else."""
    if _is_right(expected, said) or not _is_right(_alike(expected), _alike(said)):
        return None
    alone = (name for name in HABITS if _is_right(_alike(expected, name), _alike(said, name)))
    return next(alone, "several")


def _is_right(expected: str, said: str) -> bool:
    return Result().add_word(expected, said)


def _kind(row: list[str]) -> str:
    if not WORD.search(row[0]):
        return "sentences"
    return "homographs" if WORD.search(row[1]) else "words"


def _pairs(row: list[str], kind: str) -> tuple[str, str, list[tuple[str, str]]]:
    """Return the class of an item, its text, and each expected word with what is said."""
    if kind == "words":
        said = " ".join(spoken_words(row[0]))
        return (row[2] if len(row) > 2 else "word"), row[0], [(row[1], said)]
    if kind == "sentences":
        expected, said_words = re.sub(r"\s*\|\s*", "|", row[2]).split(), spoken_words(row[1])
        return row[0], row[1], _aligned([word.strip(WORD_MARKS) for word in expected], said_words)
    sentence, word, expected_phones = row[:3]
    written = [token.strip("።፣፤፥፦፧" + WORD_MARKS) for token in sentence.split()]
    said_words = spoken_words(sentence)
    place = written.index(word) if word in written else 0
    said = said_words[place] if len(said_words) == len(written) else ""
    return "homographs", f"{sentence}  ({word})", [(expected_phones, said)]


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
    parser.add_argument("--kind", choices=("words", "sentences", "homographs"), help="default: by the columns")
    parser.add_argument("--wrong", type=int, default=0, help="how many wrong items to print")
    arguments = parser.parse_args()
    done = score(arguments.file, arguments.kind)
    print(f"{arguments.file.name}: {done.kind}")
    for name, result in sorted(done.results.items()):
        print(result.line(name))
    print(done.everything.line("all"))
    counts = ", ".join(f"{name} {done.habits[name]}" for name in (*HABITS, "several"))
    print(f"words that differ only in a habit: {counts}")
    print(done.alike.line("all, habits as one"))
    print(*done.wrong[: arguments.wrong], sep="\n")


if __name__ == "__main__":
    main()
