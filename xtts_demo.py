"""Open the page in the browser; it works on this computer and stays on it unless told otherwise."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from utils.core.addresses import is_loopback
from utils.core.errors import AmharicTtsError
from utils.core.paths import OUTPUT
from utils.ui import access, gradio_patches

PORT = 7860
LAST_PORT = 65_535
VARIABLE = "AMHARIC_TTS_AUTH"


def main(words: Sequence[str] | None = None) -> int:
    """Start the page, say where it is, and stay until Ctrl-C."""
    arguments = parser().parse_args(words)
    try:
        serve(arguments)
    except AmharicTtsError as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """Name what can be chosen; everything else is chosen on the page."""
    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this computer only)")
    found.add_argument("--port", type=port, default=PORT, help=f"first port to try (default: {PORT})")
    found.add_argument("--share", action="store_true", help="make a public link through gradio's servers")
    secret = f"ask visitors for this; in the variable {VARIABLE} other users of this computer cannot read it"
    found.add_argument("--auth", default="", metavar="USER:PASSWORD", help=secret)
    found.add_argument("--output", type=Path, default=OUTPUT, help="folder of the projects (default: output/)")
    return found


def port(word: str) -> int:
    """Read the number of a port."""
    if not word.isdecimal() or not 1 <= int(word) <= LAST_PORT:
        raise argparse.ArgumentTypeError(f"{word} is no port; choose one from 1 to {LAST_PORT}")
    return int(word)


def serve(arguments: argparse.Namespace) -> None:
    """Check who may come in before anything slow is loaded, then open the page."""
    exposed = arguments.share or not is_loopback(arguments.host)
    given = os.environ.pop(VARIABLE, "")  # what the page starts has no use for it
    who = access.credentials(arguments.auth or given, exposed=exposed)
    gradio_patches.skip_stub_files()
    from utils.ui import app  # gradio takes seconds: --help and a wrong --auth need not wait

    page, address = app.launch(
        arguments.output, host=arguments.host, port=arguments.port, share=arguments.share, who=who
    )
    moved = address.port != arguments.port
    write(f"{f'Port {arguments.port} is taken; the' if moved else 'The'} page is at {address.url}")
    if address.shared:
        write(f"Public link: {address.shared}")
    if who and who.generated:
        write(f"Visitors need the user {who.user} and the password {who.password}")
    page.block_thread()


def write(sentence: str) -> None:
    """Write one line to the terminal at once."""
    sys.stdout.write(f"{sentence}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
