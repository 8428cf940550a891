"""``python -m utils <command>``: finds the command by its file name and imports it on demand."""

import argparse
import ast
import contextlib
import difflib
import errno
import importlib
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

from utils.core import integrations
from utils.core.errors import EXIT_INTERRUPTED, AmharicTtsError, shortage
from utils.core.paths import HOME_VARIABLE, IS_CHECKOUT, expand_home, require_one_line
from utils.core.threads import prepare_libraries

COMMANDS = Path(__file__).with_name("cli")
PROGRAM = "python -m utils" if IS_CHECKOUT else "amharic-xtts"
USAGE_ERROR = 2
OUTPUT_ERRORS = {errno.ENOSPC, errno.EPIPE, errno.EIO, errno.EBADF}


def main(words: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if words is None else list(words)
    if not words or words[0] in {"-h", "--help"}:
        sys.stdout.write(overview())
        return 0
    if unreadable := [word for word in words if re.search("[\ud800-\udfff]", word)]:
        sys.stderr.write(f"This argument is not valid UTF-8: {unreadable[0]!r}. Check the encoding of your terminal.\n")
        return USAGE_ERROR
    prepare_libraries()
    verb, *rest = ["page", *words] if words[0] == "--version" else words
    if verb not in (verbs := known_verbs()):
        sys.stderr.write(f"Unknown command: {verb}. Commands: {', '.join(sorted(verbs))}.\n")
        return USAGE_ERROR
    return call(verb, rest)


def open_page() -> int:
    """Open the page, as xtts_demo.py does."""
    return main(["page", *sys.argv[1:]])


def console() -> int:
    """Run the installed program: the page, or the command that is named."""
    return run(main if sys.argv[1:] and not sys.argv[1].startswith("--") else open_page)


def known_verbs() -> dict[str, Path]:
    files = [*COMMANDS.glob("[a-z]*.py"), *integrations.commands()]
    return {path.stem.replace("_", "-"): path for path in sorted(files, key=lambda path: path.stem)}


def load_command(verb: str) -> ModuleType:
    """Import a command."""
    name = verb.replace("-", "_")
    package = "integrations" if any(path.stem == name for path in integrations.commands()) else "cli"
    return importlib.import_module(f"utils.{package}.{name}")  # also one that is not a file there: tests add one


def overview() -> str:
    """List the commands with the first line of their docstrings, without importing them."""
    lines = [f"usage: {PROGRAM} <command> [options]   (see <command> --help)", ""]
    verbs = known_verbs()
    width = max(map(len, verbs))
    for verb, path in verbs.items():
        summary = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]
        lines.append(f"  {verb:<{width}}  {summary}")
    return "\n".join([*lines, ""])


def call(verb: str, words: Sequence[str]) -> int:
    """Import one command and run it; an error for the user becomes one line on stderr."""
    from utils.config.flags import with_hyphens  # pydantic takes a moment, which the overview does not need

    module = load_command(verb)
    parser = argparse.ArgumentParser(prog=f"{PROGRAM} {verb}", description=module.__doc__, allow_abbrev=False)
    module.add_arguments(parser)
    arguments, unknown = parser.parse_known_args(with_hyphens(words))
    if unknown:
        flags = re.findall(r"--[\w-]+", parser.format_help())
        near = difflib.get_close_matches(unknown[0].partition("=")[0], flags, n=1)
        parser.error(f"unrecognized arguments: {' '.join(unknown)}" + (f" (did you mean {near[0]}?)" if near else ""))
    try:
        for value in vars(arguments).values():
            if isinstance(value, Path):
                require_one_line(value)
        code: int = module.run(arguments)
    except AmharicTtsError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    except Exception as error:
        if not (sentence := shortage(error)):
            raise
        sys.stderr.write(f"{sentence}\n")
        return 1
    return code


def open_streams() -> None:
    """Make both standard streams writable in UTF-8; those that are closed go nowhere."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name) or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  # until the end
        stream.reconfigure(encoding="utf-8", errors="replace")  # Windows consoles speak cp1252
        setattr(sys, name, stream)


def run(start: Callable[[], int] = main) -> int:
    """Run a command, until Ctrl-C, with standard streams that may be closed, full or of another encoding."""
    os.environ.setdefault("USER", "user")  # torch asks for a name, which the user of a container may lack
    if home := os.environ.get(HOME_VARIABLE):
        os.environ[HOME_VARIABLE] = str(expand_home(home).absolute())  # child processes start in another folder
    open_streams()
    try:
        code = start()
        sys.stdout.flush()
    except (KeyboardInterrupt, RuntimeError) as error:  # Python 3.11 wraps one that comes while a class is created
        if not any(isinstance(each, KeyboardInterrupt) for each in (error, error.__cause__)):
            raise
        sys.stderr.write("Interrupted.\n")
        return EXIT_INTERRUPTED
    except OSError as error:
        if error.filename is not None or error.errno not in OUTPUT_ERRORS:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)  # flushed at exit
        with contextlib.suppress(OSError):
            sys.stderr.write(f"The output cannot be written: {error.strerror}.\n")
        return 1
    return code


if __name__ == "__main__":
    sys.exit(run())
