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
    words = sys.argv[1:] if words is None else list(words)
    if not words or words[0] in {"-h", "--help"}:
        sys.stdout.write(overview())
        return 0
    verb, *rest = words
    if verb not in (verbs := known_verbs()):
        sys.stderr.write(f"Unknown command: {verb}. Commands: {', '.join(sorted(verbs))}.\n")
        return USAGE_ERROR
    return call(verb, rest)


def known_verbs() -> dict[str, Path]:
    return {path.stem.replace("_", "-"): path for path in sorted(COMMANDS.glob("[a-z]*.py"))}


def overview() -> str:
    """List the commands with the first line of their docstrings, without importing them."""
    lines = ["usage: python -m utils <command> [options]   (see <command> --help)", ""]
    verbs = known_verbs()
    width = max(map(len, verbs))
    for verb, path in verbs.items():
        summary = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]
        lines.append(f"  {verb:<{width}}  {summary}")
    return "\n".join([*lines, ""])


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
