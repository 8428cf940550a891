"""Show the lengths of the clips and suggest a max_audio_length."""

import argparse
import dataclasses
from pathlib import Path

from utils.cli.check_text import add_vocabulary, open_tokenizer
from utils.cli.runs import add_project
from utils.core.paths import project
from utils.dataset.statistics import measure_lengths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = "Add --vocab or --model to count tokens too. Exit code 1: a file cannot be read."
    parser.add_argument("path", type=Path, nargs="?", help="dataset folder or list (default: the project's dataset)")
    add_project(parser)
    add_vocabulary(parser)


def run(arguments: argparse.Namespace) -> int:
    rows, measured = measure_lengths(arguments.path or project(arguments.project, arguments.output).dataset)
    if arguments.vocab or arguments.model:
        tokenizer = open_tokenizer(arguments, (row.text for row in rows))
        counts = tuple(len(tokenizer.tokenize(row.text, arguments.language).ids) for row in rows)
        measured = dataclasses.replace(measured, tokens=counts)
    print(measured.render())
    return int(bool(measured.unreadable))
