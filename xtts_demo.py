"""Start the page. It is reachable from this computer only, unless --host or --share is given."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from utils.__main__ import run
from utils.core.addresses import is_loopback
from utils.core.errors import AmharicTtsError
from utils.core.paths import OUTPUT

PORT = 7860
LAST_PORT = 65_535
VARIABLE = "AMHARIC_TTS_AUTH"


def main(words: Sequence[str] | None = None) -> int:
    """Start the page and run until Ctrl-C."""
    arguments = parser().parse_args(words)
    try:
        serve(arguments)
    except AmharicTtsError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this computer only)")
    arguments.add_argument("--port", type=port, default=PORT, help=f"first port to try (default: {PORT})")
    arguments.add_argument("--share", action="store_true", help="create a public link through Gradio's servers")
    secret = f"login for visitors; use the variable {VARIABLE} to hide it from other users of this computer"
    arguments.add_argument("--auth", default="", metavar="USER:PASSWORD", help=secret)
    arguments.add_argument("--output", type=Path, default=OUTPUT, help="folder with the projects (default: output/)")
    return arguments


def port(word: str) -> int:
    """Parse a port number."""
    if not word.isdecimal() or not 1 <= int(word) <= LAST_PORT:
        raise argparse.ArgumentTypeError(f"{word} is not a port; use 1-{LAST_PORT}")
    return int(word)


def serve(arguments: argparse.Namespace) -> None:
    """Check the login before loading anything slow, then start the page."""
    exposed = arguments.share or not is_loopback(arguments.host)
    given = os.environ.pop(VARIABLE, "")  # child processes must not inherit it
    from utils.server.page import credentials  # these are slow, and --help needs neither

    who = credentials(arguments.auth or given, exposed=exposed)
    from utils.ui import app

    page = app.launch(arguments.output, host=arguments.host, port=arguments.port, share=arguments.share, who=who)
    moved = page.server_port != arguments.port
    write(f"{f'Port {arguments.port} is in use; the' if moved else 'The'} page is at {str(page.local_url).rstrip('/')}")
    if page.share_url:
        write(f"Public link: {page.share_url}")
    if who and who.generated:
        write(f"Login for visitors: user {who.user}, password {who.password}")
    page.block_thread()


def write(sentence: str) -> None:
    """Print one line at once."""
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(run(main))
