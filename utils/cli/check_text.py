"""Check a text against a vocabulary: unknown characters, long sentences, tokens per second."""

import argparse
import heapq
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from utils.dataset.metadata import header_seconds
from utils.dataset.readers.facts import LineUnreadable
from utils.dataset.text_files import find_columns, read_any_encoding, read_listing
from utils.studio import paths
from utils.studio.facts import InputError
from utils.studio.models import pronunciations_of
from utils.xtts.tokenizer import TokenizedText, Tokenizer, prepare_tokenizer
from utils.xtts.vocabulary import UNKNOWN, Vocabulary

MAX_LONGEST = 5
MAX_LINES = 10


class TextRow(NamedTuple):
    """One line of text, with the length of its recording where known."""

    line: int
    text: str
    seconds: float | None = None


class Coverage(NamedTuple):
    """The lines of a text and their tokens."""

    token_limit: int  # of one sentence
    lines: list[tuple[TextRow, TokenizedText]]

    @property
    def missing(self) -> Counter[str]:
        """Return the symbols missing from the vocabulary, each with the number of lines that have it."""
        return Counter(symbol for _, text in self.lines for symbol in text.unknown)

    def __str__(self) -> str:
        counts = [(len(text.tokens), row.line, row.text) for row, text in self.lines]
        tokens = sum(count for count, *_ in counts)
        too_long = [line for count, line, _ in counts if count > self.token_limit]
        unknown = sum(text.tokens.count(UNKNOWN) for _, text in self.lines)  # there must be none for training
        shown = [
            f"sentences            {len(counts)}",
            f"tokens               {tokens}",
            f"unknown ([UNK])      {unknown} ({unknown / max(tokens, 1):.2%})",
            f"over {self.token_limit} tokens      {_list_lines(too_long)}",
            f"tokens per second    {self._pace()}",
        ]
        longest = heapq.nlargest(MAX_LONGEST, counts)
        shown += [*self._missing(), *(f"{count:>5} tokens, line {line}: {text[:80]}" for count, line, text in longest)]
        return "\n".join(shown)

    def _missing(self) -> list[str]:
        """Say which symbols are missing, and where; nothing if none is."""
        unreadable = [row.line for row, text in self.lines if text.unknown]
        if not unreadable:
            return []
        symbols = ", ".join(_describe(*item) for item in self.missing.most_common())
        return [f"lines with [UNK]     {_list_lines(unreadable)}", f"missing symbols      {symbols}"]

    def _pace(self) -> str:
        timed = [(row.seconds, len(text.tokens)) for row, text in self.lines if row.seconds is not None]
        seconds = sum(length for length, _ in timed)
        if not seconds:
            return "unknown: no recordings found"
        return f"{sum(count for _, count in timed) / seconds:.1f} ({len(timed)} recordings, {seconds:.1f} s)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Exit code 1: the vocabulary lacks a symbol of the text or a letter of the text mode."
    parser.add_argument("text", type=Path, help="metadata.csv (audio_file|text|speaker_name), or one sentence per line")
    add_vocabulary(parser)


def add_vocabulary(parser: argparse.ArgumentParser) -> None:
    """Add a published vocabulary with a text mode, or a model that has both."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--vocab", type=Path, help=f"vocab.json of XTTS (default: one in {paths.MODELS})")
    source.add_argument("--model", type=Path, help="folder of a trained model with vocab.json and text.json")
    parser.add_argument("--language", default="am", help="language name or code (default: am)")
    parser.add_argument("--text-mode", default="latin", choices=("latin", "ipa", "fidel"), help="not with --model")
    parser.add_argument("--backend", default="rules", choices=("rules", "epitran"), help="not with --model")


def run(arguments: argparse.Namespace) -> int:
    rows = read_rows(arguments.text)
    tokenizer = open_tokenizer(arguments, (row.text for row in rows))
    limit = tokenizer.pack(arguments.language).token_limit
    coverage = Coverage(limit, [(row, tokenizer.tokenize(row.text, arguments.language)) for row in rows])
    print(f"vocabulary           {tokenizer.vocabulary.source}")
    print(coverage)
    missing = tokenizer.missing_letters(arguments.language)
    if missing:
        print(f"missing letters      {' '.join(missing)} (this text mode does not work with this vocabulary)")
    return int(bool(coverage.missing or missing))


def read_rows(path: Path) -> list[TextRow]:
    """Read a clip list, or a text with one sentence per line; a line that training would skip is an error."""
    lines = read_any_encoding(path)[0].split("\n")
    if not find_columns(lines[0].split("|")):
        return [TextRow(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    clips, problems = read_listing(path)
    problems += [LineUnreadable(clip.line, "no_text", clip.audio) for clip in clips if not clip.text]
    if problems:
        raise InputError("bad_list", str(path), str(problems[0]).rstrip("."))
    return [TextRow(clip.line, clip.text, header_seconds(clip.path)) for clip in clips]


def open_tokenizer(arguments: argparse.Namespace, texts: Iterable[str]) -> Tokenizer:
    """Open the tokenizer of a model, or the one that training would create from a published vocabulary."""
    if arguments.model:
        return Tokenizer.load(arguments.model, pronunciations_of(arguments.model))
    base = Vocabulary.load(arguments.vocab or published_vocabulary())
    return prepare_tokenizer(
        base,
        arguments.language,
        mode=arguments.text_mode,
        backend=arguments.backend,
        texts=texts,
        allow_missing=True,
    )


def published_vocabulary() -> Path:
    """Return the vocab.json of a downloaded base model."""
    files = sorted(paths.MODELS.glob("*/vocab.json"))
    if not files:
        raise InputError("no_vocabulary", str(paths.MODELS))
    return files[-1]


def _list_lines(numbers: list[int]) -> str:
    if not numbers:
        return "0"
    shown = ", ".join(map(str, numbers[:MAX_LINES]))
    return f"{len(numbers)}: line {shown}{', …' if len(numbers) > MAX_LINES else ''}"


def _describe(symbol: str, lines: int) -> str:
    codes = " ".join(f"U+{ord(letter):04X}" for letter in symbol)
    return f"{symbol} {codes} in {lines} {'line' if lines == 1 else 'lines'}"
