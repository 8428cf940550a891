"""Measure how well words are pronounced: `python benchmarks/phone_error.py LIST.tsv` (written form, tab, phones).

Several accepted pronunciations are separated by `|` or tabs; the nearest counts. A phone is a symbol with its length,
so a missed geminate is one wrong phone; beside it every figure is given with length ignored. Words that stand in the
project's own word list are counted apart from those that its rules have to work out.
"""

import argparse
import importlib.util
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.record import save_table
from utils.amharic import normalize
from utils.amharic.alphabet import WORD, read
from utils.amharic.explanation import explain_words
from utils.amharic.lexicon import bare, stems
from utils.amharic.phonemes import phonemize

_PHONE = re.compile(r"(?:[td]͡[ʃʒ]|[^\sːʼ͡])ʼ?ː?")
_GAP = "-"
Pairs = list[tuple[str, str]]
LISTED, UNLISTED, BY_RULES = "listed", "unlisted", "by rules"
TITLE = "How well words are pronounced"


@dataclass
class Score:
    """What was counted over a list; the rates are in per cent."""

    words: int = 0
    phones: int = 0
    wrong_words: int = 0
    wrong_phones: int = 0
    wrong_words_without_length: int = 0
    wrong_phones_without_length: int = 0
    vowels: int = 0
    wrong_vowels: int = 0
    geminates: int = 0
    found: int = 0
    spurious: int = 0
    worst: list[tuple[int, str, str, str]] = field(default_factory=list)

    def add(self, written: str, expected: str, spoken: str) -> None:
        """Count one word."""
        pairs = align(split(expected), split(spoken))
        wrong = sum(a != b for a, b in pairs)
        bare = sum(
            a.rstrip("ː") != b.rstrip("ː") for a, b in align(split(expected, length=False), split(spoken, length=False))
        )
        self.words += 1
        self.phones += sum(a != _GAP for a, _ in pairs)
        self.wrong_words += wrong > 0
        self.wrong_phones += wrong
        self.wrong_words_without_length += bare > 0
        self.wrong_phones_without_length += bare
        self.vowels += sum(a == "ɨ" for a, _ in pairs)
        self.wrong_vowels += sum((a == "ɨ") != (b == "ɨ") for a, b in pairs)
        self.geminates += sum("ː" in a for a, _ in pairs)
        self.found += sum("ː" in a and "ː" in b for a, b in pairs)
        self.spurious += sum("ː" in b and "ː" not in a for a, b in pairs)
        if wrong:
            self.worst.append((wrong, written, expected, spoken))

    def rates(self) -> dict[str, float]:
        """Return the figures that are compared."""
        precision = self.found / max(self.found + self.spurious, 1)
        recall = self.found / max(self.geminates, 1)
        return {
            "phone error %": 100 * self.wrong_phones / max(self.phones, 1),
            "word error %": 100 * self.wrong_words / max(self.words, 1),
            "phone error % without length": 100 * self.wrong_phones_without_length / max(self.phones, 1),
            "word error % without length": 100 * self.wrong_words_without_length / max(self.words, 1),
            "wrong ɨ": self.wrong_vowels,
            "of ɨ": self.vowels,
            "geminate precision": precision,
            "geminate recall": recall,
            "geminate F1": 2 * precision * recall / max(precision + recall, 1e-9),
            "spurious geminates": self.spurious,
        }


def split(phones: str, *, length: bool = True) -> list[str]:
    """Cut a pronunciation into phones, each with its length."""
    found = _PHONE.findall(phones.replace("g", "ɡ").replace("ʷ", "w"))
    return found if length else [phone.rstrip("ː") for phone in found]


def align(expected: list[str], spoken: list[str]) -> Pairs:
    """Pair the phones of two pronunciations with the fewest differences; a difference of length alone costs less."""
    table = [[(0.0, "")] * (len(spoken) + 1) for _ in range(len(expected) + 1)]
    for i in range(len(expected) + 1):
        for j in range(len(spoken) + 1):
            if i or j:
                table[i][j] = min(_moves(table, expected, spoken, i, j))
    return list(_traced(table, expected, spoken))[::-1]


def _moves(
    table: list[list[tuple[float, str]]], expected: list[str], spoken: list[str], i: int, j: int
) -> Iterator[tuple[float, str]]:
    if i and j:
        yield table[i - 1][j - 1][0] + _cost(expected[i - 1], spoken[j - 1]), "both"
    if i:
        yield table[i - 1][j][0] + 1, "expected"
    if j:
        yield table[i][j - 1][0] + 1, "spoken"


def _cost(a: str, b: str) -> float:
    if a == b:
        return 0
    return 0.999 if a.rstrip("ː") == b.rstrip("ː") else 1


def _traced(table: list[list[tuple[float, str]]], expected: list[str], spoken: list[str]) -> Iterator[tuple[str, str]]:
    i, j = len(expected), len(spoken)
    while i or j:
        move = table[i][j][1]
        a = expected[i - 1] if move != "spoken" else _GAP
        b = spoken[j - 1] if move != "expected" else _GAP
        i, j = i - (move != "spoken"), j - (move != "expected")
        yield a, b


def score(path: Path, backend: str) -> dict[str, Score]:
    """Pronounce every word of a list and count: all words, those in the project's word list, and the others.

    The listed ones are counted once more with their own entries taken out of the word list, as the rules read them.
    """
    names = ["all", LISTED, UNLISTED, *([BY_RULES] if backend == "rules" else [])]
    results = {name: Score() for name in names}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            written, *accepted = line.replace("|", "\t").split("\t")
            variants = [variant.strip() for variant in accepted if variant.strip()]
            spoken = {LISTED if is_listed(written) else UNLISTED: phonemize(written, backend)}
            spoken["all"] = next(iter(spoken.values()))
            if backend == "rules" and LISTED in spoken:
                spoken[BY_RULES] = phonemize_by_rules(written)
            for name, phones in spoken.items():
                nearest = min(variants, key=lambda variant: _distance(variant, phones))
                results[name].add(written, nearest, phones)
    return results


def is_listed(written: str) -> bool:
    """Tell whether every word of a line stands in the word list itself, not only its stem."""
    return all(word.gemination.startswith("word list") for word in explain_words(normalize(written)))


def phonemize_by_rules(written: str) -> str:
    """Pronounce a text without the entries of its words in the word list."""
    listed = stems()
    keys = {bare(read(word)) for word in WORD.findall(normalize(written))}
    removed = {key: listed.pop(key) for key in keys & listed.keys()}
    try:
        return phonemize(written)
    finally:
        listed.update(removed)


def _distance(variant: str, spoken: str) -> int:
    return sum(a != b for a, b in align(split(variant), split(spoken)))


def write_down(scores: Mapping[str, Mapping[str, Score]], folder: Path) -> None:
    """Save the figures of back ends."""
    rows = [
        [f"{backend}, {words}", str(found.words), *(f"{value:.2f}" for value in found.rates().values())]
        for backend, parts in scores.items()
        for words, found in parts.items()
    ]
    save_table("phone_error", TITLE, ["", "words", *Score().rates()], rows, folder)


def main() -> None:
    """Print the figures and the worst words."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("list", type=Path, help="tab-separated: written form, accepted phones")
    parser.add_argument("--backend", default="rules", choices=("rules", "epitran"))
    parser.add_argument("--worst", type=int, default=40, help="how many wrong words to show")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")
    parser.add_argument("--results", type=Path, help="folder for the findings, of every back end (none)")
    arguments = parser.parse_args()
    wanted = [arguments.backend]
    if arguments.results:
        wanted += ["rules", *(["epitran"] if importlib.util.find_spec("epitran") else [])]
    scores = {name: score(arguments.list, name) for name in dict.fromkeys(wanted)}
    results = scores[arguments.backend]
    result = results["all"]
    if arguments.results:
        write_down(scores, arguments.results)
    if arguments.json:
        parts = {name: part.rates() | {"words": part.words} for name, part in results.items()}
        print(json.dumps(result.rates() | asdict(result) | {"parts": parts}, ensure_ascii=False))
        return
    print(f"{result.words} words, {result.phones} phones, {result.geminates} geminates")
    print(" " * 32 + "".join(f"{name:>12}" for name in results))
    print(f"{'words':32}" + "".join(f"{part.words:12}" for part in results.values()))
    for name in result.rates():
        print(f"{name:32}" + "".join(f"{part.rates()[name]:12.2f}" for part in results.values()))
    for wrong, written, expected, spoken in sorted(result.worst, reverse=True)[: arguments.worst]:
        print(f"{wrong}  {written}  expected {expected}  said {spoken}")


if __name__ == "__main__":
    main()
