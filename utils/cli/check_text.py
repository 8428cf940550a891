"""Check a text against a vocabulary: unknown characters, long sentences, tokens per second."""

import argparse
from collections.abc import Iterable
from pathlib import Path

from utils.config.train import RETIRED
from utils.core import paths
from utils.core.errors import DataError, VocabularyError
from utils.dataset.metadata import header_seconds
from utils.dataset.text_files import find_columns, read_any_encoding, read_listing
from utils.xtts.coverage import TextRow, measure_coverage
from utils.xtts.tokenizer import Tokenizer, prepare_tokenizer
from utils.xtts.vocabulary import Vocabulary


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
    coverage = measure_coverage(tokenizer, rows, arguments.language)
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
    problems += [f"line {clip.line}: no text" for clip in clips if not clip.text]
    if problems:
        raise DataError(f"{path}: {problems[0].rstrip('.')}.", hint="Correct the list.")
    return [TextRow(clip.line, clip.text, header_seconds(path.parent / clip.audio)) for clip in clips]


def open_tokenizer(arguments: argparse.Namespace, texts: Iterable[str]) -> Tokenizer:
    """Open the tokenizer of a model, or the one that training would create from a published vocabulary."""
    if arguments.model:
        return Tokenizer.load_current(arguments.model)
    base = Vocabulary.load(arguments.vocab or published_vocabulary())
    mode, backend = arguments.text_mode, arguments.backend
    return prepare_tokenizer(base, arguments.language, mode=mode, backend=backend, texts=texts, allow_missing=True)


def published_vocabulary() -> Path:
    """Return the vocab.json of a downloaded base model."""
    files = sorted(path for path in paths.MODELS.glob("*/vocab.json") if path.parent.name != RETIRED)
    if not files:
        raise VocabularyError(
            f"vocab.json is missing from {paths.MODELS}.",
            hint="Give a vocab.json of XTTS v2 with --vocab, or a trained model with --model.",
        )
    return files[-1]
