"""How well a vocabulary covers a text: unknown symbols, token counts and lengths."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from utils.core.errors import DataError
from utils.xtts.tokenizer import TokenizedText, Tokenizer
from utils.xtts.vocabulary import UNKNOWN

MAX_LONGEST, MAX_LINES = 5, 10


class TextRow(NamedTuple):
    """One line of text, with the length of its recording where known."""

    line: int
    text: str
    seconds: float | None = None


@dataclass
class Coverage:
    """Counts over a text.

    Attributes:
        token_limit: Tokens allowed in one sentence.
        sentences: Lines read.
        tokens: Tokens in all of them.
        unknown: Tokens that are [UNK].
        missing: Symbols missing from the vocabulary, with counts.
        unreadable: Lines with missing symbols.
        longest: The longest sentences as (tokens, line, text).
        too_long: Lines over the limit.
        timed_tokens: Tokens of lines with a recording.
        timed_sentences: Number of these lines.
        seconds: Length of these recordings.
    """

    token_limit: int
    sentences: int = 0
    tokens: int = 0
    unknown: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    unreadable: list[int] = field(default_factory=list)
    longest: list[tuple[int, int, str]] = field(default_factory=list)
    too_long: list[int] = field(default_factory=list)
    timed_tokens: int = 0
    timed_sentences: int = 0
    seconds: float = 0.0

    @property
    def unknown_share(self) -> float:
        """Return the share of [UNK] tokens, which must be 0 for training."""
        return self.unknown / self.tokens if self.tokens else 0.0

    @property
    def tokens_per_second(self) -> float | None:
        """Return tokens per second of audio, or None without recordings."""
        return self.timed_tokens / self.seconds if self.seconds else None

    def add(self, row: TextRow, text: TokenizedText) -> None:
        """Count one sentence."""
        count = len(text.tokens)
        self.sentences += 1
        self.tokens += count
        if text.unknown:
            self.unknown += text.tokens.count(UNKNOWN)
            self.missing.update(text.unknown)
            self.unreadable.append(row.line)
        if count > self.token_limit:
            self.too_long.append(row.line)
        if row.seconds is not None:
            self.timed_sentences += 1
            self.timed_tokens += count
            self.seconds += row.seconds
        self.longest = sorted([*self.longest, (count, row.line, row.text)], reverse=True)[:MAX_LONGEST]


def measure_coverage(tokenizer: Tokenizer, rows: Iterable[TextRow], language: str) -> Coverage:
    """Tokenize every row as training does, and count."""
    coverage = Coverage(tokenizer.pack(language).token_limit)
    for row in rows:
        coverage.add(row, tokenizer.tokenize(row.text, language))
    return coverage


def report(coverage: Coverage) -> str:
    """Format the counts for the terminal."""
    pace = "unknown: no recordings found"
    if coverage.tokens_per_second is not None:
        recordings = f"{coverage.timed_sentences} recordings, {coverage.seconds:.1f} s"
        pace = f"{coverage.tokens_per_second:.1f} ({recordings})"
    lines = [
        f"sentences            {coverage.sentences}",
        f"tokens               {coverage.tokens}",
        f"unknown ([UNK])      {coverage.unknown} ({coverage.unknown_share:.2%})",
        f"over {coverage.token_limit} tokens      {_lines(coverage.too_long)}",
        f"tokens per second    {pace}",
    ]
    if coverage.missing:
        lines.append(f"lines with [UNK]     {_lines(coverage.unreadable)}")
        lines.append("missing symbols      " + ", ".join(_symbol(*item) for item in coverage.missing.most_common()))
    lines += [f"{tokens:>5} tokens, line {line}: {text[:80]}" for tokens, line, text in coverage.longest]
    return "\n".join(lines)


def _lines(numbers: list[int]) -> str:
    if not numbers:
        return "0"
    shown = ", ".join(map(str, numbers[:MAX_LINES]))
    return f"{len(numbers)}: line {shown}{', …' if len(numbers) > MAX_LINES else ''}"


def _symbol(symbol: str, lines: int) -> str:
    codes = " ".join(f"U+{ord(letter):04X}" for letter in symbol)
    return f"{symbol} {codes} in {lines} {'line' if lines == 1 else 'lines'}"


def read_rows(path: Path) -> Iterator[TextRow]:
    """Read a metadata list (``audio_file|text|speaker_name``) or a text with one sentence per line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as UTF-8 text: {error}.") from error
    if "text" not in lines[0].split("|"):
        yield from (TextRow(number, line) for number, line in enumerate(lines, 1) if line.strip())
        return
    rows = csv.DictReader(lines, delimiter="|", quoting=csv.QUOTE_NONE)
    for number, row in enumerate(rows, 2):
        if not (row.get("text") or "").strip():
            raise DataError(f"{path}:{number}: no text in {'|'.join(map(str, row.values()))!r}.")
        yield TextRow(number, row["text"], _seconds(path.parent, row.get("audio_file")))


def _seconds(folder: Path, name: str | None) -> float | None:
    """Return the length of a recording, or None where the file does not exist."""
    if not name or not (path := folder / name).is_file():
        return None
    import soundfile

    try:
        return float(soundfile.info(path).duration)
    except soundfile.LibsndfileError as error:
        raise DataError(
            f"{path} is not a readable recording: {error}.", hint="Replace it or remove its line."
        ) from error
