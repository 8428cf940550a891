"""``python -m utils <command>``: finds the command by its file name and imports it on demand."""

import argparse
import ast
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from utils.core.errors import AmharicTtsError

COMMANDS = Path(__file__).with_name("cli")
USAGE_ERROR = 2


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = sys.argv[1:] if words is None else list(words)
    verbs = known_verbs()
    if not words or words[0] in {"-h", "--help"}:
        sys.stdout.write(overview(verbs))
        return 0
    verb, *rest = words
    if verb not in verbs:
        sys.stderr.write(f"Unknown command: {verb}. Commands: {', '.join(sorted(verbs))}.\n")
        return USAGE_ERROR
    return call(verb, rest)


def known_verbs() -> dict[str, Path]:
    """Map each command to its file."""
    return {path.stem.replace("_", "-"): path for path in sorted(COMMANDS.glob("[a-z]*.py"))}


def overview(verbs: dict[str, Path]) -> str:
    """List the commands with the first line of their docstrings, without importing them."""
    width = max(map(len, verbs), default=0)
    lines = [f"  {verb:<{width}}  {first_line(path)}" for verb, path in verbs.items()]
    return "\n".join(["usage: python -m utils <command> [options]   (see <command> --help)", "", *lines, ""])


def first_line(path: Path) -> str:
    """Read the first line of a module's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def call(verb: str, words: Sequence[str]) -> int:
    """Import one command and run it; an error for the user becomes one line on stderr."""
    module = importlib.import_module(f"utils.cli.{verb.replace('-', '_')}")
    parser = argparse.ArgumentParser(prog=f"python -m utils {verb}", description=module.__doc__, allow_abbrev=False)
    module.add_arguments(parser)
    arguments = parser.parse_args(words)
    try:
        code: int = module.run(arguments)
    except AmharicTtsError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return code


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]  # Windows consoles speak cp1252
    sys.stderr.reconfigure(encoding="utf-8", errors="replace")  # type: ignore[union-attr]
    sys.exit(main())
