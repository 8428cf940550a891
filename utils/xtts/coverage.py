"""How well a vocabulary covers a text: unknown symbols, token counts and lengths."""

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from utils.xtts.tokenizer import Tokenizer
from utils.xtts.vocabulary import UNKNOWN

MAX_LONGEST, MAX_LINES = 5, 10


class TextRow(NamedTuple):
    """One line of text, with the length of its recording where known."""

    line: int
    text: str
    seconds: float | None = None


@dataclass
class Coverage:
    """Counts over a text."""

    token_limit: int  # of one sentence
    sentences: int = 0
    tokens: int = 0
    unknown: int = 0  # tokens that are [UNK]; there must be none for training
    missing: Counter[str] = field(default_factory=Counter)  # symbols missing from the vocabulary
    unreadable: list[int] = field(default_factory=list)  # lines with missing symbols
    longest: list[tuple[int, int, str]] = field(default_factory=list)  # tokens, line and text of the longest sentences
    too_long: list[int] = field(default_factory=list)  # lines over the limit
    timed_tokens: int = 0  # of lines with a recording
    timed_sentences: int = 0
    seconds: float = 0.0  # of these recordings

    def __str__(self) -> str:
        pace = "unknown: no recordings found"
        if self.seconds:
            recordings = f"{self.timed_sentences} recordings, {self.seconds:.1f} s"
            pace = f"{self.timed_tokens / self.seconds:.1f} ({recordings})"
        lines = [
            f"sentences            {self.sentences}",
            f"tokens               {self.tokens}",
            f"unknown ([UNK])      {self.unknown} ({self.unknown / max(self.tokens, 1):.2%})",
            f"over {self.token_limit} tokens      {_list_lines(self.too_long)}",
            f"tokens per second    {pace}",
        ]
        if self.missing:
            lines.append(f"lines with [UNK]     {_list_lines(self.unreadable)}")
            lines.append("missing symbols      " + ", ".join(_describe(*item) for item in self.missing.most_common()))
        lines += [f"{tokens:>5} tokens, line {line}: {text[:80]}" for tokens, line, text in self.longest]
        return "\n".join(lines)


def measure_coverage(tokenizer: Tokenizer, rows: Iterable[TextRow], language: str) -> Coverage:
    coverage = Coverage(tokenizer.pack(language).token_limit)
    for row in rows:
        text = tokenizer.tokenize(row.text, language)
        count = len(text.tokens)
        coverage.sentences += 1
        coverage.tokens += count
        if text.unknown:
            coverage.unknown += text.tokens.count(UNKNOWN)
            coverage.missing.update(text.unknown)
            coverage.unreadable.append(row.line)
        if count > coverage.token_limit:
            coverage.too_long.append(row.line)
        if row.seconds is not None:
            coverage.timed_sentences += 1
            coverage.timed_tokens += count
            coverage.seconds += row.seconds
        coverage.longest = heapq.nlargest(MAX_LONGEST, [*coverage.longest, (count, row.line, row.text)])
    return coverage


def _list_lines(numbers: list[int]) -> str:
    if not numbers:
        return "0"
    shown = ", ".join(map(str, numbers[:MAX_LINES]))
    return f"{len(numbers)}: line {shown}{', …' if len(numbers) > MAX_LINES else ''}"


def _describe(symbol: str, lines: int) -> str:
    codes = " ".join(f"U+{ord(letter):04X}" for letter in symbol)
    return f"{symbol} {codes} in {lines} {'line' if lines == 1 else 'lines'}"
