"""What a vocabulary makes of a whole text, counted before any training."""

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from utils.core.errors import DataError
from utils.xtts.tokenizer import Tokenizer
from utils.xtts.vocabulary import UNKNOWN

LONGEST_SHOWN = 5


class TextRow(NamedTuple):
    """One line of text, where it stands, and how long its recording is, where that is known."""

    line: int
    text: str
    seconds: float | None = None


class Length(NamedTuple):
    """A sentence by its number of tokens."""

    tokens: int
    line: int
    text: str


@dataclass
class Coverage:
    """Counts over a text.

    Attributes:
        token_limit: Tokens that one sentence may have.
        sentences: Lines that were read.
        tokens: Tokens of all of them.
        unknown: How many of these are [UNK].
        lacking: Every symbol that the vocabulary lacks, and how often it occurs.
        unreadable: Lines with at least one of them.
        longest: The longest sentences, longest first.
        too_long: Lines over the limit.
        timed_tokens: Tokens of the lines whose recording's length is known.
        timed_sentences: How many lines these are.
        seconds: That length, summed.
    """

    token_limit: int
    sentences: int = 0
    tokens: int = 0
    unknown: int = 0
    lacking: Counter[str] = field(default_factory=Counter)
    unreadable: list[int] = field(default_factory=list)
    longest: list[Length] = field(default_factory=list)
    too_long: list[int] = field(default_factory=list)
    timed_tokens: int = 0
    timed_sentences: int = 0
    seconds: float = 0.0

    @property
    def unknown_share(self) -> float:
        """Return the share of tokens that are [UNK]; it has to be 0."""
        return self.unknown / self.tokens if self.tokens else 0.0

    @property
    def tokens_per_second(self) -> float | None:
        """Return tokens per second of audio, or None where no duration is known."""
        return self.timed_tokens / self.seconds if self.seconds else None

    def count(self, row: TextRow, tokens: tuple[str, ...], lacking: tuple[str, ...]) -> None:
        """Add one sentence."""
        self.sentences += 1
        self.tokens += len(tokens)
        if lacking:
            self.unknown += tokens.count(UNKNOWN)
            self.lacking.update(lacking)
            self.unreadable.append(row.line)
        if len(tokens) > self.token_limit:
            self.too_long.append(row.line)
        if row.seconds is not None:
            self.timed_sentences += 1
            self.timed_tokens += len(tokens)
            self.seconds += row.seconds
        self.longest = sorted([*self.longest, Length(len(tokens), row.line, row.text)], reverse=True)[:LONGEST_SHOWN]


def measure_coverage(tokenizer: Tokenizer, rows: Iterable[TextRow], language: str) -> Coverage:
    """Read every row as training would, and count."""
    coverage = Coverage(tokenizer.pack(language).token_limit)
    for row in rows:
        reading = tokenizer.tokenize(row.text, language)
        coverage.count(row, reading.tokens, reading.unknown)
    return coverage


def report(coverage: Coverage) -> str:
    """Write the counts as lines for a person."""
    lines = [
        f"sentences            {coverage.sentences}",
        f"tokens               {coverage.tokens}",
        f"unknown ([UNK])      {coverage.unknown} ({coverage.unknown_share:.2%})",
        f"over {coverage.token_limit} tokens      {_lines(coverage.too_long)}",
        f"tokens per second    {_pace(coverage)}",
    ]
    if coverage.lacking:
        lines.append(f"lines with [UNK]     {_lines(coverage.unreadable)}")
        lines.append("symbols lacking      " + ", ".join(_symbol(*item) for item in coverage.lacking.most_common()))
    lines += [f"{length.tokens:>5} tokens, line {length.line}: {length.text[:80]}" for length in coverage.longest]
    return "\n".join(lines)


def _pace(coverage: Coverage) -> str:
    pace = coverage.tokens_per_second
    if pace is None:
        return "not known: no recording was found beside the text"
    return f"{pace:.1f} (over {coverage.timed_sentences} recordings, {coverage.seconds:.1f} s)"


def _lines(numbers: list[int]) -> str:
    if not numbers:
        return "0"
    shown = ", ".join(map(str, numbers[:10]))
    return f"{len(numbers)}: line {shown}{', …' if len(numbers) > 10 else ''}"


def _symbol(symbol: str, lines: int) -> str:
    codes = " ".join(f"U+{ord(letter):04X}" for letter in symbol)
    return f"{symbol} {codes} in {lines} {'line' if lines == 1 else 'lines'}"


def read_rows(path: Path) -> Iterator[TextRow]:
    """Read a metadata list (``audio_file|text|speaker_name``), or a plain text with one sentence a line."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as UTF-8 text: {error}.") from error
    header = lines[0].split("|") if lines else []
    if "text" not in header:
        yield from (TextRow(number, line) for number, line in enumerate(lines, 1) if line.strip())
        return
    rows = csv.DictReader(lines, delimiter="|", quoting=csv.QUOTE_NONE)
    for number, row in enumerate(rows, 2):
        if not (row.get("text") or "").strip():
            raise DataError(f"{path}:{number}: no text in {'|'.join(map(str, row.values()))!r}.")
        yield TextRow(number, row["text"], _seconds(path.parent, row.get("audio_file")))


def _seconds(folder: Path, name: str | None) -> float | None:
    """Return the length of a recording from its header, or None where there is no such file."""
    if not name or not (path := folder / name).is_file():
        return None
    import soundfile

    try:
        return float(soundfile.info(path).duration)
    except soundfile.LibsndfileError as error:
        raise DataError(f"{path} is no readable recording: {error}.", hint="Replace it or remove its line.") from error
