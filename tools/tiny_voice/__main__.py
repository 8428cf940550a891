"""Build the embedded voice (``python -m tools.tiny_voice build``) or measure it (``… evaluate``)."""

import argparse
import sys
from collections.abc import Sequence

from tools.tiny_voice import build_voice, evaluate
from utils.core.errors import AmharicTtsError


def main(words: Sequence[str] | None = None) -> int:
    """Run one of the two commands and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.tiny_voice", allow_abbrev=False)
    commands = parser.add_subparsers(required=True)
    for name, module in (("build", build_voice), ("evaluate", evaluate)):
        command = commands.add_parser(name, description=module.__doc__, allow_abbrev=False)
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    arguments = parser.parse_args(words)
    try:
        return int(arguments.run(arguments))
    except AmharicTtsError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
