"""Check the settings of a fine-tuning run and show what they come to."""

import argparse
import sys

from utils.config import TrainConfig
from utils.errors import RunError
from utils.flags import add_flags, command_line, read_flags

CONFIG = TrainConfig


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Take every setting of the training."""
    parser.add_argument("--show", action="store_true", help="print the effective settings and the command, then end")
    add_flags(parser, CONFIG)


def run(arguments: argparse.Namespace) -> int:
    """Print the effective settings; the trainer itself is not part of this version."""
    config = read_flags(arguments, CONFIG)
    sys.stdout.write(f"# {command_line('train', config)}\n{config.to_yaml()}")
    if arguments.show:
        return 0
    raise RunError(
        "This version checks settings but cannot train yet.", hint="CHANGELOG.md tells what each version can do."
    )
